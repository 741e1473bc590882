// One contract over every registered topology, at every size it exists for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "topology/mixing.h"
#include "topology/registry.h"

namespace cohort::topology {
namespace {

constexpr int kLargest = 40;
const std::string kFile = testing::TempDir() + "cohort-tree-" + std::to_string(::getpid());
constexpr Step kSteps[] = {0, 1, 2, 3, 7, 1000000007};

class TopologyConformance : public testing::TestWithParam<TopologyRegistry::Entry> {
 protected:
  ~TopologyConformance() override {
    std::error_code ignored;
    std::filesystem::remove(kFile, ignored);
  }

  static TopologyOptions options_for(int size) {
    TopologyOptions options{.size = size, .seed = 7, .degree = 0, .file = ""};
    if (GetParam().name == "edges") options.file = tree_of(size);
    return options;
  }

  // A tree, so every size has one: rank r below rank (r - 1) / 2. Good until the next call.
  static std::string tree_of(int size) {
    std::ofstream file(kFile);
    for (int rank = 1; rank < size; ++rank) file << (rank - 1) / 2 << ' ' << rank << '\n';
    return kFile;
  }

  // The topology at every size from 1 to kLargest for which it exists.
  static std::vector<std::unique_ptr<Topology>> all_sizes() {
    std::vector<std::unique_ptr<Topology>> all;
    for (int size = 1; size <= kLargest; ++size) {
      try {
        all.push_back(GetParam().make(options_for(size)));
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr(", not " + std::to_string(size)));
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

TEST_P(TopologyConformance, IsDoublyStochasticAtEveryStepAndSymmetricUnlessItChanges) {
  for (const auto& topology : all_sizes()) {
    for (const Step step : kSteps) {
      const Matrix mixing = mixing_matrix(*topology, step);
      for (int row = 0; row < mixing.size; ++row) {
        double row_sum = 0;
        double column_sum = 0;
        for (int column = 0; column < mixing.size; ++column) {
          if (!topology->changes()) {
            EXPECT_EQ(mixing.at(row, column), mixing.at(column, row));
          }
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

TEST_P(TopologyConformance, SendsToThoseThatHear) {
  for (const auto& topology : all_sizes()) {
    for (const Step step : kSteps) {
      std::vector<std::vector<Rank>> hear(topology->size());
      for (Rank rank = 0; rank < topology->size(); ++rank) {
        for (const Neighbour& neighbour : topology->neighbours(rank, step)) {
          hear[neighbour.rank].push_back(rank);
        }
      }
      for (Rank rank = 0; rank < topology->size(); ++rank) {
        EXPECT_EQ(topology->receivers(rank, step), hear[rank]) << topology->size();
      }
    }
  }
}

TEST_P(TopologyConformance, ReturnsToTheSameGraphAfterAPeriod) {
  for (const auto& topology : all_sizes()) {
    ASSERT_GE(topology->period(), 1);
    EXPECT_EQ(topology->changes(), topology->period() > 1);
    bool changed = false;
    for (Step step = 0; step < 2 * topology->period(); ++step) {
      for (Rank rank = 0; rank < topology->size(); ++rank) {
        const auto now = topology->neighbours(rank, step);
        EXPECT_EQ(now, topology->neighbours(rank, step + topology->period()));
        changed = changed || now != topology->neighbours(rank, 0);
      }
    }
    EXPECT_EQ(changed, topology->changes()) << topology->size();
  }
}

TEST_P(TopologyConformance, IsTheSameEveryTimeItIsMade) {
  for (const auto& topology : all_sizes()) {
    const auto again = GetParam().make(options_for(topology->size()));
    for (const Step step : kSteps) {
      for (Rank rank = 0; rank < topology->size(); ++rank) {
        EXPECT_EQ(topology->neighbours(rank, step), again->neighbours(rank, step));
      }
    }
  }
}

TEST_P(TopologyConformance, ReachesEverybodyWithinAPeriodTimesTheRanks) {
  for (const auto& topology : all_sizes()) {
    std::set<Rank> reached = {0};
    for (Step step = 0; step < topology->period() * topology->size(); ++step) {
      for (const Rank rank : std::set<Rank>(reached)) {
        for (const Rank next : topology->receivers(rank, step)) reached.insert(next);
      }
    }
    EXPECT_EQ(static_cast<int>(reached.size()), topology->size());
  }
}

TEST_P(TopologyConformance, ReachesTheMeanFromAnywhere) {
  for (const auto& topology : all_sizes()) {
    const int size = topology->size();
    std::vector<double> values(size, 0.0);
    values[0] = size;  // whose mean is 1
    // The slowest here are a ring and a tree of 40: gaps of 0.008 need some 3,000 steps for 1e-9.
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

TEST_P(TopologyConformance, ShrinksTheDistanceByItsGapInEveryPeriod) {
  for (const auto& topology : all_sizes()) {
    const int size = topology->size();
    const double gap = mixing_gap(*topology);
    EXPECT_GT(gap, 0) << size;
    EXPECT_LE(gap, 1 + 1e-7) << size;
    const Matrix period = period_matrix(*topology);
    std::vector<double> values(size);
    for (int i = 0; i < size; ++i) values[i] = std::sin(1.0 + i * i);
    double mean = 0;
    for (const double value : values) mean += value / size;
    double before = 0;
    double after = 0;
    for (int row = 0; row < size; ++row) {
      double mixed = 0;
      for (int column = 0; column < size; ++column) {
        mixed += period.at(row, column) * values[column];
      }
      before += (values[row] - mean) * (values[row] - mean);
      after += (mixed - mean) * (mixed - mean);
    }
    EXPECT_LE(std::sqrt(after), (1 - gap) * std::sqrt(before) + 1e-7) << size;
  }
}

TEST_P(TopologyConformance, RefusesAGroupWithoutRanksOrWithTooMany) {
  for (const int size : {0, -3, 1 << 20, 2000000000}) {
    TopologyOptions options{.size = size, .seed = 0, .degree = 0, .file = ""};
    if (GetParam().name == "edges") options.file = tree_of(3);
    EXPECT_THROW(GetParam().make(options), ConfigError) << size;
  }
}

TEST_P(TopologyConformance, RefusesOptionsItHasNoUseFor) {
  const int size = all_sizes().front()->size();
  TopologyOptions options = options_for(size);
  if (GetParam().name != "random-regular") {
    options.degree = 3;
    EXPECT_THROW(GetParam().make(options), ConfigError);
  }
  options = options_for(size);
  if (GetParam().name != "edges") {
    options.file = "graph.txt";
    EXPECT_THROW(GetParam().make(options), ConfigError);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, TopologyConformance, testing::ValuesIn(topologies().entries()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace cohort::topology
