#include "methods/replica_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "core/error.h"
#include "methods/group.h"
#include "methods/statistics.h"

namespace cohort::methods {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// What each rank's body threw, as text; "" for nothing.
template <class Error>
std::vector<std::string> messages(Channels& channels, const std::function<void(Rank)>& body) {
  std::vector<std::string> found(static_cast<std::size_t>(channels.size));
  run_group(channels, [&](Rank rank) {
    try {
      body(rank);
    } catch (const Error& error) {
      found[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  return found;
}

TEST(CompareReplicas, SaysNothingOfEqualOnes) {
  Channels channels(3);
  run_group(channels, [&](Rank rank) {
    TinyModel model;
    Replica replica(model, {});
    for (Step step = 0; step < 3; ++step) {
      compare_replicas(replica, *channels.options(rank).control, step, transport::far());
    }
  });
}

TEST(CompareReplicas, NamesTheRankAndTheTensorOfOneFlippedBitOnEveryRank) {
  TinyModel named;
  for (Rank corrupt = 0; corrupt < 3; ++corrupt) {
    for (const models::Parameter& parameter : named.store().parameters()) {
      Channels channels(3);
      const auto found = messages<RunError>(channels, [&](Rank rank) {
        TinyModel model;
        Replica replica(model, {});
        for (const Replica::Segment& segment : replica.segments()) {
          if (rank != corrupt || segment.name != parameter.name) continue;
          auto* bits = reinterpret_cast<std::uint32_t*>(replica.parameters().data_ptr<float>());
          bits[segment.range.end() - 1] ^= 1;
        }
        compare_replicas(replica, *channels.options(rank).control, 41, transport::far());
      });
      EXPECT_THAT(found, Each(AllOf(HasSubstr("rank " + std::to_string(corrupt)),
                                    HasSubstr(parameter.name), HasSubstr("step 41"))));
    }
  }
}

TEST(RequireSameModel, RefusesAnotherOneOnAllRanks) {
  for (const std::string difference : {"layers", "layout", "optimizer"}) {
    Channels channels(3);
    const auto found = messages<ConfigError>(channels, [&](Rank rank) {
      const bool odd = rank == 1;
      std::unique_ptr<models::Model> model = std::make_unique<TinyModel>();
      if (odd && difference == "layers") model = std::make_unique<BranchingModel>();
      ReplicaOptions options;
      options.channels_last = odd && difference == "layout";
      options.optimizer = odd && difference == "optimizer" ? "adam" : "sgd";
      Replica replica(*model, options);
      require_same_model(replica, *channels.options(rank).control, transport::far());
    });
    EXPECT_THAT(found, Each(HasSubstr("rank 1"))) << difference;
  }
}

TEST(RequireSameModel, DoesNotMindOtherWeights) {
  Channels channels(2);
  run_group(channels, [&](Rank rank) {
    TinyModel model(static_cast<std::uint64_t>(rank + 1));
    Replica replica(model, {});
    require_same_model(replica, *channels.options(rank).control, transport::far());
  });
}

TEST(CopyFromFirstRank, GivesEveryoneItsParametersBuffersStateAndCounters) {
  constexpr int kRanks = 3;
  Channels channels(kRanks);
  std::vector<at::Tensor> parameters(kRanks);
  std::vector<at::Tensor> statistics(kRanks);
  std::vector<at::Tensor> momentum(kRanks);
  std::vector<std::int64_t> updates(kRanks);
  std::vector<std::int64_t> batches(kRanks);
  run_group(channels, [&](Rank rank) {
    const auto at = static_cast<std::size_t>(rank);
    TinyModel model(static_cast<std::uint64_t>(rank + 1));
    Replica replica(model, {.channels_last = true});
    const auto local = methods().make("local", MethodOptions{});
    for (Step step = 0; step < 3 - rank; ++step) {
      take_step(model, replica, *local, {step, 0.1}, {tiny_batch(at + 10)});
    }
    copy_from_first_rank(replica, *channels.options(rank).control, transport::far());
    parameters[at] = replica.parameters().clone();
    statistics[at] = replica.statistics().clone();
    momentum[at] = replica.slots().at(0).clone();
    updates[at] = replica.updates();
    for (const models::Buffer& buffer : model.store().buffers()) {
      if (buffer.value.scalar_type() == at::kLong) batches[at] = buffer.value.item<std::int64_t>();
    }
  });
  EXPECT_THAT(updates, Each(3));
  EXPECT_THAT(batches, Each(3));
  for (std::size_t rank = 1; rank < kRanks; ++rank) {
    EXPECT_TRUE(parameters[rank].equal(parameters[0]));
    EXPECT_TRUE(statistics[rank].equal(statistics[0]));
    EXPECT_TRUE(momentum[rank].equal(momentum[0]));
  }
}

std::vector<at::Tensor> materialized(StatisticsPolicy policy) {
  constexpr int kRanks = 3;
  Channels channels(kRanks);
  std::vector<at::Tensor> found(kRanks);
  run_group(channels, [&](Rank rank) {
    TinyModel model;
    Replica replica(model, {});
    replica.statistics().fill_(std::exp2(2.0 * rank));  // 1, 4, 16
    MethodOptions options = channels.options(rank);
    options.statistics = policy;
    share_statistics(replica, options);
    found[static_cast<std::size_t>(rank)] = replica.statistics().clone();
  });
  return found;
}

TEST(SettleStatistics, FollowsThePolicy) {
  for (const auto& [policy, expected] :
       {std::pair{StatisticsPolicy::kFirstRank, std::vector<float>{1, 1, 1}},
        {StatisticsPolicy::kMean, {7, 7, 7}},
        {StatisticsPolicy::kSynchronised, {1, 4, 16}}}) {
    const auto found = materialized(policy);
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      ASSERT_EQ(found[rank].numel(), 6);
      EXPECT_TRUE(found[rank].equal(at::zeros_like(found[rank]).fill_(expected[rank])))
          << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace cohort::methods
