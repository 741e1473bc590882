// One contract over every registered topology, at every size it exists for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "topology/complete.h"
#include "topology/mixing.h"
#include "topology/registry.h"
#include "topology/ring.h"

namespace cohort {
namespace {

constexpr int kLargest = 40;
constexpr Step kSteps[] = {0, 1, 2, 3, 7, 1000000007};

class TopologyConformance : public testing::TestWithParam<TopologyRegistry::Entry> {
 protected:
  // The topology at every size from 1 to kLargest for which it exists.
  static std::vector<std::unique_ptr<Topology>> all_sizes() {
    std::vector<std::unique_ptr<Topology>> all;
    for (int size = 1; size <= kLargest; ++size) {
      try {
        all.push_back(GetParam().make(size));
      } catch (const ConfigError& error) {
        EXPECT_FALSE(std::string(error.what()).empty());
        continue;
      }
      EXPECT_EQ(all.back()->size(), size);
    }
    EXPECT_FALSE(all.empty()) << "exists for no size up to " << kLargest;
    return all;
  }
};

TEST_P(TopologyConformance, CarriesTheNameItIsRegisteredBy) {
  for (const auto& topology : all_sizes()) EXPECT_EQ(topology->name(), GetParam().name);
}

TEST_P(TopologyConformance, ListsOtherRanksOnceAscendingWithPositiveWeights) {
  for (const auto& topology : all_sizes()) {
    for (const Step step : kSteps) {
      for (Rank rank = 0; rank < topology->size(); ++rank) {
        Rank before = -1;
        for (const Neighbour& neighbour : topology->neighbours(rank, step)) {
          EXPECT_GT(neighbour.rank, before);
          EXPECT_LT(neighbour.rank, topology->size());
          EXPECT_NE(neighbour.rank, rank);
          EXPECT_GT(neighbour.weight, 0);
          before = neighbour.rank;
        }
      }
    }
  }
}

TEST_P(TopologyConformance, IsSymmetricAndDoublyStochasticAtEveryStep) {
  for (const auto& topology : all_sizes()) {
    for (const Step step : kSteps) {
      const Matrix mixing = mixing_matrix(*topology, step);
      for (int row = 0; row < mixing.size; ++row) {
        double row_sum = 0;
        double column_sum = 0;
        for (int column = 0; column < mixing.size; ++column) {
          EXPECT_EQ(mixing.at(row, column), mixing.at(column, row));
          EXPECT_GE(mixing.at(row, column), -1e-15);
          row_sum += mixing.at(row, column);
          column_sum += mixing.at(column, row);
        }
        EXPECT_NEAR(row_sum, 1, 1e-12) << topology->size();
        EXPECT_NEAR(column_sum, 1, 1e-12) << topology->size();
      }
    }
  }
}

TEST_P(TopologyConformance, ReachesTheMeanFromAnywhere) {
  for (const auto& topology : all_sizes()) {
    const int size = topology->size();
    std::vector<double> values(size, 0.0);
    values[0] = size;  // whose mean is 1
    // The slowest here is a ring of 40: its gap of 0.008 needs some 3,000 steps for 1e-9.
    for (Step step = 0; step < 4000; ++step) {
      std::vector<double> mixed(size);
      for (Rank rank = 0; rank < size; ++rank) {
        mixed[rank] = values[rank];
        for (const Neighbour& neighbour : topology->neighbours(rank, step)) {
          mixed[rank] += neighbour.weight * (values[neighbour.rank] - values[rank]);
        }
      }
      values = std::move(mixed);
    }
    for (const double value : values) EXPECT_NEAR(value, 1, 1e-6) << size;
  }
}

TEST_P(TopologyConformance, RefusesAGroupWithoutRanks) {
  EXPECT_THROW(GetParam().make(0), ConfigError);
  EXPECT_THROW(GetParam().make(-3), ConfigError);
}

INSTANTIATE_TEST_SUITE_P(Registry, TopologyConformance, testing::ValuesIn(topologies().entries()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Ring, KnowsItsNeighboursWhereItCloses) {
  using testing::ElementsAre;
  const Ring ring(5);
  EXPECT_THAT(ring.neighbours(0, 0), ElementsAre(Neighbour{1, 1.0 / 3}, Neighbour{4, 1.0 / 3}));
  EXPECT_THAT(ring.neighbours(3, 9), ElementsAre(Neighbour{2, 1.0 / 3}, Neighbour{4, 1.0 / 3}));
  EXPECT_THAT(ring.neighbours(4, 0), ElementsAre(Neighbour{0, 1.0 / 3}, Neighbour{3, 1.0 / 3}));
}

TEST(Ring, OfTwoIsOnePairAndOfOneIsAlone) {
  EXPECT_THAT(Ring(2).neighbours(1, 0), testing::ElementsAre(Neighbour{0, 0.5}));
  EXPECT_TRUE(Ring(1).neighbours(0, 0).empty());
}

TEST(Complete, GivesEverybodyTheSameShare) {
  const auto others = Complete(4).neighbours(2, 0);
  ASSERT_EQ(others.size(), 3U);
  for (const Neighbour& other : others) EXPECT_EQ(other.weight, 0.25);
}

}  // namespace
}  // namespace cohort
