// What NCCL needs is a GPU: without one only the refusal is tested.
#include "launch/nccl_job.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/nccl.h"
#include "core/error.h"
#include "transport/rank_threads.h"

namespace cohort::launch {
namespace {

std::string refusal_of(int workers) {
  try {
    make_nccl_job({.workers = workers});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

class GpuMemory {
 public:
  GpuMemory(int gpu, const std::vector<float>& values) : size_(values.size()) {
    EXPECT_EQ(cudaSetDevice(gpu), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&data_, size_ * sizeof(float)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(float), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory() { cudaFree(data_); }

  std::span<float> span() { return {static_cast<float*>(data_), size_}; }
  std::vector<float> read() {
    std::vector<float> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(float), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

TEST(NcclJob, RefusesMoreWorkersThanGpus) {
  const int gpus = collectives::count_gpus();
  EXPECT_THAT(refusal_of(gpus + 1), testing::HasSubstr("GPU"));
  if (gpus == 0) {
    EXPECT_THAT(refusal_of(0), testing::HasSubstr("--engine threads"));
  }
}

class NcclJobOnGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (collectives::count_gpus() == 0) GTEST_SKIP() << "no GPU";
    job_ = make_nccl_job({});
    members_ = job_->join();
  }

  std::unique_ptr<Job> job_;
  std::vector<collectives::Membership> members_;
};

TEST_F(NcclJobOnGpus, SumsInTheirMemory) {
  ASSERT_EQ(members_.size(), static_cast<std::size_t>(collectives::count_gpus()));
  const int size = job_->shape().size;
  const std::vector<std::string> errors = transport::run_ranks(size, [&](Rank rank) {
    collectives::Membership& member = members_[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(member.gradients_on_device);
    for (const std::size_t length : {1, 1000, 3000001}) {
      GpuMemory memory(rank, std::vector<float>(length, static_cast<float>(rank + 1)));
      member.gradients->all_reduce(memory.span(), transport::far());
      const auto sum = static_cast<float>(size * (size + 1) / 2);
      EXPECT_THAT(memory.read(), testing::Each(sum));
    }
    member.gradients->all_reduce({}, transport::far());
    member.gradients->barrier(transport::far());
    const std::byte own{static_cast<unsigned char>(rank)};
    EXPECT_EQ(member.gradients->all_gather({&own, 1}, transport::far()).size(),
              static_cast<std::size_t>(size));
  });
  EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(size)));
}

TEST_F(NcclJobOnGpus, TellsTheOthersWhyARankLeft) {
  if (job_->shape().size < 2) GTEST_SKIP() << "one GPU";
  const std::vector<std::string> errors = transport::run_ranks(job_->shape().size, [&](Rank rank) {
    collectives::Membership& member = members_[static_cast<std::size_t>(rank)];
    if (rank == 0) return member.leave("its disk is full");
    GpuMemory memory(rank, {1, 2, 3});
    member.gradients->all_reduce(memory.span(), transport::far());
  });
  for (std::size_t rank = 1; rank < errors.size(); ++rank) {
    EXPECT_THAT(errors[rank], testing::HasSubstr("its disk is full"));
  }
}

}  // namespace
}  // namespace cohort::launch
