// What each topology is, beyond the contract all of them keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "topology/complete.h"
#include "topology/expander.h"
#include "topology/exponential.h"
#include "topology/hypercube.h"
#include "topology/margulis_expander.h"
#include "topology/mixing.h"
#include "topology/one_peer_exponential.h"
#include "topology/random_regular.h"
#include "topology/registry.h"
#include "topology/ring.h"
#include "topology/sizes.h"
#include "topology/social.h"
#include "topology/star.h"
#include "topology/torus.h"

namespace cohort::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Rank> beside(const Topology& topology, Rank rank, Step step = 0) {
  std::vector<Rank> ranks;
  for (const Neighbour& each : topology.neighbours(rank, step)) ranks.push_back(each.rank);
  return ranks;
}

std::vector<int> degrees_of(const Topology& topology) {
  std::vector<int> all;
  for (Rank rank = 0; rank < topology.size(); ++rank) {
    all.push_back(static_cast<int>(topology.neighbours(rank, 0).size()));
  }
  return all;
}

std::string refusal(const std::string& name, int size, int degree = 0) {
  try {
    topologies().make(name, TopologyOptions{.size = size, .seed = 0, .degree = degree, .file = ""});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "made";
}

TEST(Ring, KnowsItsNeighboursWhereItCloses) {
  const Ring ring(5);
  EXPECT_THAT(ring.neighbours(0, 0), ElementsAre(Neighbour{1, 1.0 / 3}, Neighbour{4, 1.0 / 3}));
  EXPECT_THAT(ring.neighbours(3, 9), ElementsAre(Neighbour{2, 1.0 / 3}, Neighbour{4, 1.0 / 3}));
  EXPECT_THAT(ring.neighbours(4, 0), ElementsAre(Neighbour{0, 1.0 / 3}, Neighbour{3, 1.0 / 3}));
}

TEST(Ring, OfTwoIsOnePairAndOfOneIsAlone) {
  EXPECT_THAT(Ring(2).neighbours(1, 0), ElementsAre(Neighbour{0, 0.5}));
  EXPECT_TRUE(Ring(1).neighbours(0, 0).empty());
}

TEST(Complete, GivesEverybodyTheSameShare) {
  const auto others = Complete(4).neighbours(2, 0);
  ASSERT_EQ(others.size(), 3U);
  for (const Neighbour& other : others) EXPECT_EQ(other.weight, 0.25);
}

TEST(Torus, IsAGridWhoseBordersMeet) {
  const auto torus = make_torus(12);  // 3 rows of 4
  EXPECT_THAT(beside(*torus, 0), ElementsAre(1, 3, 4, 8));
  EXPECT_THAT(beside(*torus, 6), ElementsAre(2, 5, 7, 10));
  for (const Neighbour& each : torus->neighbours(6, 0)) EXPECT_EQ(each.weight, 0.2);
}

TEST(Torus, CountsNeighboursOnceWhereItIsTwoWide) {
  EXPECT_THAT(beside(*make_torus(8), 1), ElementsAre(0, 2, 5));
  EXPECT_EQ(make_torus(8)->neighbours(1, 0).front().weight, 0.25);
  EXPECT_THAT(beside(*make_torus(4), 0), ElementsAre(1, 2));
  EXPECT_THAT(make_torus(7)->neighbours(0, 0), Ring(7).neighbours(0, 0));
}

TEST(Expander, AddsInversesToACycle) {
  const auto expander = make_expander(7);  // 2 * 4 = 8 = 1, 3 * 5 = 15 = 1
  EXPECT_THAT(beside(*expander, 0), ElementsAre(1, 6));
  EXPECT_THAT(beside(*expander, 2), ElementsAre(1, 3, 4));
  EXPECT_THAT(beside(*expander, 3), ElementsAre(2, 4, 5));
  EXPECT_THAT(beside(*expander, 6), ElementsAre(0, 5));
  // The inverse of 2 modulo 5 is 3, beside it already.
  EXPECT_THAT(beside(*make_expander(5), 2), ElementsAre(1, 3));
}

TEST(Expander, KeepsItsGapAsItGrows) {
  for (const int size : {31, 101, 257}) {
    EXPECT_GT(mixing_gap(*make_expander(size)), 0.02) << size;
    EXPECT_GT(mixing_gap(*make_expander(size)), 5 * mixing_gap(Ring(size)) - 0.05) << size;
  }
}

TEST(Social, HasTheDegreesOfTheBook) {
  const auto social = make_social(32);
  EXPECT_THAT(degrees_of(*social),
              ElementsAre(8, 7, 8, 7, 4, 4, 4, 3, 4, 4, 4, 6, 7, 8, 5, 2, 2, 2,  // women
                          3, 3, 6, 4, 8, 8, 10, 14, 12, 5, 4, 6, 3, 3));         // events
  EXPECT_EQ(social->neighbours(15, 0).front().weight, 1.0 / 14);
}

TEST(Star, HangsEverybodyOnRankZero) {
  const auto star = make_star(5);
  EXPECT_THAT(degrees_of(*star), ElementsAre(4, 1, 1, 1, 1));
  EXPECT_THAT(star->neighbours(3, 0), ElementsAre(Neighbour{0, 0.2}));
}

TEST(Hypercube, JoinsNumbersThatDifferInOneBit) {
  EXPECT_THAT(beside(*make_hypercube(8), 5), ElementsAre(1, 4, 7));
}

TEST(Exponential, ReachesPowersOfTwoBothWays) {
  EXPECT_THAT(beside(*make_exponential(12), 0), ElementsAre(1, 2, 4, 8, 10, 11));
  EXPECT_THAT(degrees_of(*make_exponential(5)), ElementsAre(4, 4, 4, 4, 4));
}

TEST(OnePeerExponential, HearsOneAndIsHeardByAnotherAtEachStep) {
  const OnePeerExponential graph(6);
  EXPECT_EQ(graph.period(), 3);
  EXPECT_THAT(beside(graph, 5, 0), ElementsAre(0));
  EXPECT_THAT(beside(graph, 5, 1), ElementsAre(1));
  EXPECT_THAT(beside(graph, 5, 2), ElementsAre(3));
  EXPECT_THAT(graph.receivers(5, 2), ElementsAre(1));
  EXPECT_FALSE(OnePeerExponential(2).changes());
}

TEST(OnePeerExponential, ReachesTheExactMeanInAPeriodWhenAPowerOfTwo) {
  for (const int size : {2, 4, 8, 64}) {
    const Matrix period = period_matrix(OnePeerExponential(size));
    for (const double value : period.values) EXPECT_NEAR(value, 1.0 / size, 1e-15);
    EXPECT_NEAR(mixing_gap(OnePeerExponential(size)), 1, 1e-7);
  }
}

TEST(RandomRegular, HasTheDegreeAskedForAndDependsOnTheSeed) {
  for (const auto& [size, degree] : {std::pair{16, 3}, {17, 4}, {64, 5}, {9, 2}, {6, 5}, {2, 1}}) {
    const auto graph = make_random_regular(size, degree, 1);
    for (const int each : degrees_of(*graph)) EXPECT_EQ(each, degree);
  }
  std::set<std::vector<Rank>> seen;
  for (Seed seed = 0; seed < 20; ++seed) seen.insert(beside(*make_random_regular(32, 3, seed), 0));
  EXPECT_GT(seen.size(), 15U);
}

TEST(RandomRegular, TakesThreeOrWhatFits) {
  for (const auto& [size, degree] :
       {std::pair{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}, {10, 3}, {11, 4}}) {
    for (const int each : degrees_of(*make_random_regular(size, 0, 3))) EXPECT_EQ(each, degree);
  }
}

TEST(RandomRegular, MixesAsFastAsTheoryPromises) {
  // Friedman: adjacency's second eigenvalue is near 2 sqrt(d - 1).
  const double gap = mixing_gap(*make_random_regular(256, 4, 5));
  EXPECT_NEAR(gap, 1 - (1 + 2 * std::sqrt(3.0)) / 5, 0.03);
}

TEST(RandomRegular, RefusesWhatDoesNotExist) {
  EXPECT_THAT(refusal("random-regular", 9, 3), HasSubstr("2 or 4, not 3"));
  EXPECT_THAT(refusal("random-regular", 8, 8), HasSubstr("from 2 to 7, not 8"));
  EXPECT_THAT(refusal("random-regular", 8, 1), HasSubstr("from 2 to 7, not 1"));
  EXPECT_THAT(refusal("random-regular", 8, -2), HasSubstr("not -2"));
  EXPECT_THAT(refusal("random-regular", 60000, 59998), HasSubstr("too many edges"));
}

TEST(Sizes, AreRefusedWithTheNearestThatExist) {
  EXPECT_EQ(refusal("expander", 8), "expander needs a prime number of workers: 7 or 11, not 8");
  EXPECT_EQ(refusal("margulis-expander", 32),
            "margulis-expander needs a square number of workers: 25 or 36, not 32");
  EXPECT_EQ(refusal("hypercube", 24),
            "hypercube needs a power of two as the number of workers: 16 or 32, not 24");
  EXPECT_EQ(refusal("social", 8), "social is a network of exactly 32 workers: 32, not 8");
  EXPECT_EQ(refusal("hypercube", 65535),
            "hypercube needs a power of two as the number of workers: 32768 or 65536, not 65535");
  EXPECT_EQ(refusal("ring", 0), "a topology needs 1 to 65536 workers, not 0");
}

TEST(Sizes, KnowTheirNumbers) {
  EXPECT_TRUE(is_prime(2) && is_prime(65521) && !is_prime(1) && !is_prime(9) && !is_prime(65535));
  EXPECT_TRUE(is_square(1) && is_square(65536) && !is_square(2) && !is_square(65535));
  EXPECT_TRUE(is_power_of_two(1) && is_power_of_two(65536) && !is_power_of_two(12));
  EXPECT_EQ(square_root(0), 0);
  EXPECT_EQ(square_root(35), 5);
}

}  // namespace
}  // namespace cohort::topology
