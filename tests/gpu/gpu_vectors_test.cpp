// Gossip in a GPU's memory, beside the same in main memory.
#include "methods/gpu_vectors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include <cmath>

#include "collectives/one_gpu.h"
#include "compressors/model_codec.h"
#include "compressors/registry.h"
#include "core/random.h"
#include "gossip/frame.h"
#include "gossip/node.h"
#include "gossip/settings.h"
#include "gpu/gpu_vector.h"

namespace cohort::test {
namespace {

constexpr int kRanks = 5;
const std::vector<std::int64_t> kSizes = {70, 1, 1003, 0, 40961, 2048, 16, 17};

// The tensors in main memory, or, with padding, where a replica has them on a GPU.
std::vector<Range> tensors(std::int64_t alignment) {
  std::vector<Range> all;
  std::int64_t at = 0;
  for (const std::int64_t size : kSizes) {
    all.push_back({at, size});
    at += (size + alignment - 1) / alignment * alignment;
  }
  return all;
}

const std::vector<Range> kPacked = tensors(1);
const std::vector<Range> kPlaces = tensors(16);
const auto kNumel = static_cast<std::size_t>(kPacked.back().end());
const std::size_t kPadded = static_cast<std::size_t>(kPlaces.back().end()) + 15;

std::vector<float> moved(const std::vector<float>& values, const std::vector<Range>& from,
                         const std::vector<Range>& to, std::size_t size) {
  std::vector<float> all(size);
  for (std::size_t n = 0; n < from.size(); ++n) {
    std::copy_n(values.begin() + from[n].begin, from[n].size, all.begin() + to[n].begin);
  }
  return all;
}

std::vector<float> noise(std::uint64_t number) {
  RandomStream random(7, "noise", {number});
  std::vector<float> values(kNumel);
  for (float& value : values) value = static_cast<float>(0.01 * random.normal());
  return values;
}

// All ranks in one thread, with frames carried by hand.
struct Group {
  explicit Group(const gossip::GossipSettings& settings, bool on_gpu) {
    const auto topology = gossip::make_topology(settings, kRanks);
    const auto board = collectives::make_message_board(kRanks);
    for (Rank rank = 0; rank < kRanks; ++rank) {
      if (on_gpu) vectors.push_back(methods::make_gpu_vectors(settings, kPlaces, kPadded, board));
      nodes.push_back(gossip::make_gossip_node(settings, rank, topology, kPacked,
                                               on_gpu ? vectors.back() : nullptr));
      x.emplace_back(std::vector<float>(on_gpu ? kPadded : kNumel));
      host.emplace_back(kNumel);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i]->start(vector(i));
  }

  std::span<float> vector(std::size_t i) { return vectors.empty() ? host[i] : x[i].span(); }

  void round(std::uint64_t number) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::vector<float> more = noise(kRanks * number + i);
      if (vectors.empty()) {
        for (std::size_t j = 0; j < kNumel; ++j) host[i][j] += more[j];
      } else {
        x[i].add(moved(more, kPacked, kPlaces, kPadded));
      }
      nodes[i]->begin_round(vector(i));
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const auto& one : nodes[i]->take_outgoing()) {
        bytes += methods::counted_bytes(*one.frame);
        nodes[static_cast<std::size_t>(one.to)]->on_frame(static_cast<Rank>(i), *one.frame);
      }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i]->end_round(vector(i));
  }

  std::vector<std::shared_ptr<methods::GpuVectors>> vectors;
  std::vector<std::unique_ptr<gossip::GossipNode>> nodes;
  std::vector<GpuVector> x;
  std::vector<std::vector<float>> host;
  std::size_t bytes = 0;
};

struct Case {
  std::string method;
  std::string compressor;
  bool overlap = true;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.method << ' ' << one.compressor << (one.overlap ? "" : " without overlap");
}

gossip::GossipSettings settings_of(const Case& one) {
  gossip::GossipSettings settings;
  settings.method = one.method;
  settings.compressor = one.compressor;
  settings.compression = {.seed = 5, .ratio = 0.9, .bits = 6, .biased = one.method != "dcd"};
  settings.stepsize = one.method == "d-psgd" ? 1 : 0.4;
  settings.overlap = one.overlap;
  return settings;
}

class EveryGossip : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  }
};

// Bit for bit, but where a scale is a sum in another order.
TEST_P(EveryGossip, DoesOnTheGpuWhatItDoesInMainMemory) {
  const gossip::GossipSettings settings = settings_of(GetParam());
  const bool sums = settings.compressor == "sign" || settings.compressor == "qsgd";
  Group cpu(settings, false);
  Group gpu(settings, true);
  for (std::uint64_t number = 0; number < 12; ++number) {
    cpu.round(number);
    gpu.round(number);
  }
  for (std::size_t i = 0; i < kRanks; ++i) {
    const std::vector<float> padded = gpu.x[i].read();
    const std::vector<float> x = moved(padded, kPlaces, kPacked, kNumel);
    for (std::size_t j = 0; j < kNumel; ++j) {
      ASSERT_NEAR(x[j], cpu.host[i][j], sums ? 1e-5 : 0) << "rank " << i << ", element " << j;
    }
    EXPECT_EQ(moved(x, kPacked, kPlaces, kPadded), padded) << "padding is zero";
    const auto there = gpu.nodes[i]->vectors();
    const auto here = cpu.nodes[i]->vectors();
    ASSERT_EQ(there.size(), here.size());
    for (std::size_t n = 0; n < here.size(); ++n) {
      EXPECT_EQ(there[n].name, here[n].name);
      std::vector<float> values(kNumel);
      gpu.vectors[i]->copy(there[n].values, values);
      for (std::size_t j = 0; j < kNumel; ++j) {
        ASSERT_NEAR(values[j], here[n].values[j], sums ? 1e-5 : 0) << here[n].name << ' ' << j;
      }
    }
  }
  const bool fixed = settings.compressor != "top-k" && settings.compressor != "qsgd";
  if (fixed) {
    EXPECT_EQ(gpu.bytes, cpu.bytes);
  } else {
    EXPECT_GE(gpu.bytes, cpu.bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryGossip,
    testing::Values(Case{"d-psgd", "none"}, Case{"d-psgd", "none", false}, Case{"d-psgd", "bf16"},
                    Case{"d-psgd", "fp16"}, Case{"choco", "none"}, Case{"choco", "sign"},
                    Case{"choco", "fp16"}, Case{"dcd", "none"}, Case{"dcd", "bf16"},
                    Case{"deep-squeeze", "sign"}, Case{"ecd", "none"}, Case{"choco", "top-k"},
                    Case{"choco", "random-k"}, Case{"choco", "qsgd"}, Case{"dcd", "qsgd"},
                    Case{"dcd", "random-k"}, Case{"deep-squeeze", "top-k"}, Case{"ecd", "random-k"},
                    Case{"ecd", "qsgd"}));

TEST(GpuVectors, SayWhichMessageWasNotFinite) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  for (const char* compressor : {"none", "fp16", "sign", "top-k", "random-k", "qsgd"}) {
    Group gpu(settings_of({"choco", compressor}), true);
    for (std::uint64_t number = 0; number < 2; ++number) gpu.round(number);
    EXPECT_EQ(gpu.vectors[1]->first_infinite(), methods::GpuVectors::kNever) << compressor;
    std::vector<float> one(kPadded);
    one[static_cast<std::size_t>(kPlaces[2].end()) - 1] = INFINITY;
    gpu.x[1].add(one);
    gpu.round(2);
    gpu.round(3);
    EXPECT_EQ(gpu.vectors[1]->first_infinite(), 3U) << compressor;
    EXPECT_EQ(gpu.vectors[3]->first_infinite(), methods::GpuVectors::kNever) << compressor;
  }
}

// What a message of each is decoded to, in turn with the same encoder.
std::vector<std::vector<float>> through_messages(const compressors::CompressorOptions& options,
                                                 const std::string& compressor,
                                                 const std::vector<std::vector<float>>& inputs,
                                                 const std::vector<Range>& places) {
  const gossip::GossipSettings settings{.compressor = compressor, .compression = options};
  const auto vectors = methods::make_gpu_vectors(settings, places, places.back().end(),
                                                 collectives::make_message_board(1));
  const auto values = vectors->make();
  const auto decoded = vectors->make();
  std::vector<std::vector<float>> all;
  Bytes message;
  for (const std::vector<float>& input : inputs) {
    vectors->copy(input, values);
    vectors->clear(decoded);
    vectors->encode(values, 0, all.size(), message);
    vectors->decode_add(message, 0, all.size(), 1.0F, decoded);
    all.emplace_back(input.size());
    vectors->copy(decoded, all.back());
  }
  return all;
}

// Those of more than 131,072 elements are shared out to several blocks.
TEST(GpuVectors, KeepTheSameElementsOfLongTensors) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  const std::vector<Range> places = {
      {0, 131071}, {131072, 3}, {131088, 131072}, {262160, 600007}, {862176, 2097152}};
  std::vector<Range> packed;
  for (const Range& place : places) {
    packed.push_back({packed.empty() ? 0 : packed.back().end(), place.size});
  }
  const auto numel = static_cast<std::size_t>(packed.back().end());
  std::vector<std::vector<float>> inputs(5, std::vector<float>(numel));
  RandomStream random(7, "long-tensors", {});
  for (std::size_t i = 0; i < numel; ++i) {
    const double drawn = random.normal();
    inputs[0][i] = static_cast<float>(drawn);
    inputs[1][i] = static_cast<float>(std::round(3 * drawn));            // many alike
    inputs[2][i] = i % 1000 == 7 ? static_cast<float>(drawn) : 0.0F;     // fewer than are kept
    inputs[3][i] = i % 2 == 0 ? 1.5F : -1.5F;                            // all alike
    inputs[4][i] = static_cast<float>(std::ldexp(drawn, i % 140 - 70));  // of every size
  }
  for (const double ratio : {0.99, 0.5}) {
    const compressors::CompressorOptions options{.ratio = ratio};
    const auto there = through_messages(options, "top-k", inputs, places);
    compressors::ModelCodec codec(compressors::compressors().make("top-k", options), packed);
    for (std::size_t n = 0; n < inputs.size(); ++n) {
      Bytes wire;
      std::vector<float> here(numel);
      codec.encode(inputs[n], 0, n, wire);
      codec.decode(wire, 0, n, here);
      EXPECT_EQ(there[n], here) << "input " << n << ", ratio " << ratio;
    }
  }
}

// Where 16 bits hold a level with its sign, and where they do not.
TEST(GpuVectors, RoundToALevelNearby) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  for (const int bits : {4, 8, 15, 16}) {
    const std::vector<float> input = noise(1);
    const auto decoded = through_messages({.seed = 5, .bits = bits}, "qsgd", {input}, kPlaces);
    for (const Range& tensor : kPacked) {
      double squares = 0;
      for (std::int64_t i = tensor.begin; i < tensor.end(); ++i) {
        squares += std::pow(input[static_cast<std::size_t>(i)], 2);
      }
      const double step = 1.001 * std::sqrt(squares) / ((1 << bits) - 1);
      for (std::int64_t i = tensor.begin; i < tensor.end(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_NEAR(decoded[0][at], input[at], step) << bits << " bits, element " << i;
      }
    }
  }
}

TEST(GpuVectors, LeaveOutWhatHasNoKernel) {
  gossip::GossipSettings settings = settings_of({"choco", "sign"});
  EXPECT_EQ(methods::make_gpu_vectors(settings, kPlaces, kPadded, nullptr), nullptr)
      << "no shared GPU";
}

}  // namespace
}  // namespace cohort::test
