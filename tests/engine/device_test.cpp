#include "engine/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "core/error.h"

namespace cohort::engine {
namespace {

using testing::HasSubstr;

std::string device_refusal(const std::string& name) {
  try {
    parse_device(name);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseDevice, KnowsTheProcessor) { EXPECT_TRUE(parse_device("cpu").is_cpu()); }

TEST(ParseDevice, RefusesOtherNamesAndListsTheKnown) {
  for (const char* name : {"gpu", "", "CPU", "cpu:0", "metal"}) {
    EXPECT_THAT(device_refusal(name), HasSubstr("cpu, cuda or cuda:N")) << name;
  }
}

TEST(ParseDevice, SaysWhenThereIsNoGpu) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "there is a GPU";
  for (const char* name : {"cuda", "cuda:0", "cuda:99"}) {
    EXPECT_THAT(device_refusal(name), HasSubstr("--device cpu")) << name;
  }
}

TEST(ParseDevice, RefusesGpusThatAreNotThereOrMisspelt) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  EXPECT_TRUE(parse_device("cuda").is_cuda());
  EXPECT_THAT(device_refusal("cuda:999"), HasSubstr("numbered from 0"));
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cudax"}) {
    EXPECT_THAT(device_refusal(name), HasSubstr("cuda:N")) << name;
  }
}

}  // namespace
}  // namespace cohort::engine
