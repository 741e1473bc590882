#include "topology/summary.h"

#include <gtest/gtest.h>

#include "topology/one_peer_exponential.h"
#include "topology/registry.h"
#include "topology/social.h"

namespace cohort::topology {
namespace {

TEST(TopologySummary, OfTheSocialNetworkIsThePublishedOne) {
  const TopologySummary summary = summarise(*make_social(32));
  EXPECT_EQ(summary.ranks, 32);
  EXPECT_EQ(summary.edges, 89);
  EXPECT_EQ(summary.least_degree, 2);
  EXPECT_EQ(summary.most_degree, 14);
  EXPECT_NEAR(summary.mean_degree, 2 * 89 / 32.0, 1e-12);
  EXPECT_NEAR(summary.gap.value(), 0.0903, 5e-5);
  EXPECT_GT(summary.laplacian_norm.value(), 1);
}

TEST(TopologySummary, CountsTheEdgesOfAWholePeriod) {
  const TopologySummary summary = summarise(OnePeerExponential(8));
  EXPECT_EQ(summary.period, 3);
  EXPECT_EQ(summary.edges, 8 + 8 + 4) << "4 away is the same both ways";
  EXPECT_EQ(summary.most_degree, 1);
  EXPECT_FALSE(summary.laplacian_norm.has_value());
}

TEST(TopologySummary, LeavesOutTheSpectrumOfVeryManyRanks) {
  const auto topology = topologies().make(
      "exponential", TopologyOptions{.size = 4096, .seed = 0, .degree = 0, .file = ""});
  const TopologySummary summary = summarise(*topology);
  EXPECT_FALSE(summary.gap.has_value());
  EXPECT_EQ(summary.most_degree, 2 * 11 + 1);
}

}  // namespace
}  // namespace cohort::topology
