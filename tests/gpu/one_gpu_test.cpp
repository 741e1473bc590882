// Sums of ranks that share one GPU, beside those in main memory.
#include "collectives/one_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "collectives/inputs.h"
#include "collectives/shared_memory.h"
#include "gpu/gpu_vector.h"
#include "transport/rank_threads.h"

namespace cohort::test {
namespace {

class OneGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  }

  static std::vector<std::unique_ptr<collectives::Collectives>> group_of(int size) {
    auto group = collectives::make_shared_memory_group(size);
    EXPECT_TRUE(collectives::sum_on_gpu(group, 0));
    return group;
  }
};

TEST_F(OneGpu, MakesTheBitsOfMainMemory) {
  for (const int size : {1, 2, 3, 8}) {
    const auto host = collectives::make_shared_memory_group(size);
    const auto group = group_of(size);
    transport::run_ranks(size, [&](Rank rank) {
      for (const std::size_t numel : {1U, 3U, 4U, 1001U, 300007U}) {
        std::vector<float> expected = collectives::input_of(rank, numel);
        GpuVector vector(expected);
        torch::cuda::synchronize();
        group[rank]->all_reduce(vector.span(), transport::far());
        host[rank]->all_reduce(expected, transport::far());
        EXPECT_EQ(vector.read(), expected) << numel << " of " << size;
      }
    });
  }
}

TEST_F(OneGpu, TakesVectorsThatAreNotAligned) {
  const auto group = group_of(3);
  transport::run_ranks(3, [&](Rank rank) {
    GpuVector vector(std::vector<float>(1003, static_cast<float>(rank)));
    torch::cuda::synchronize();
    group[rank]->all_reduce(vector.span().subspan(static_cast<std::size_t>(rank), 1000),
                            transport::far());
    const std::vector<float> sums = vector.read();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const bool summed = i >= static_cast<std::size_t>(rank) && i < 1000U + rank;
      EXPECT_EQ(sums[i], summed ? 3.0F : static_cast<float>(rank)) << i;
    }
  });
}

TEST_F(OneGpu, CountsAsMuchAsInMainMemory) {
  const auto host = collectives::make_shared_memory_group(4);
  const auto group = group_of(4);
  transport::run_ranks(4, [&](Rank rank) {
    std::vector<float> values = collectives::input_of(rank, 400000);
    GpuVector vector(values);
    torch::cuda::synchronize();
    group[rank]->all_reduce(vector.span(), transport::far());
    host[rank]->all_reduce(values, transport::far());
    // Beside it the ranks show each other where their vectors are: an address and a length.
    EXPECT_EQ(group[rank]->traffic().sent, host[rank]->traffic().sent + 3 * 16);
  });
}

TEST_F(OneGpu, SumsVectorsInMainMemoryThere) {
  const auto group = group_of(3);
  transport::run_ranks(3, [&](Rank rank) {
    std::vector<float> values(5000, static_cast<float>(rank));
    group[rank]->all_reduce(values, transport::far());
    EXPECT_EQ(values, std::vector<float>(5000, 3.0F));
    group[rank]->all_reduce({}, transport::far());
  });
}

TEST_F(OneGpu, RefusesOtherLengthsAndNamesWhoLeft) {
  auto group = group_of(2);
  auto errors = transport::run_ranks(2, [&](Rank rank) {
    GpuVector vector(std::vector<float>(rank == 0 ? 10 : 11));
    group[rank]->all_reduce(vector.span(), transport::far());
  });
  for (const std::string& error : errors) EXPECT_THAT(error, testing::HasSubstr("brought 11"));
  group = group_of(2);
  errors = transport::run_ranks(2, [&](Rank rank) {
    if (rank == 0) return group[0]->leave("its disk is full");
    GpuVector vector(std::vector<float>(10));
    group[1]->all_reduce(vector.span(), transport::far());
  });
  EXPECT_THAT(errors[1], testing::HasSubstr("its disk is full"));
}

}  // namespace
}  // namespace cohort::test
