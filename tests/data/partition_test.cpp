#include "data/partition.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "data/support.h"

namespace cohort::data::test {
namespace {

using ::testing::HasSubstr;

std::vector<std::int64_t> cyclic_labels(std::int64_t samples, std::int64_t classes) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < samples; ++i) labels.push_back(i % classes);
  return labels;
}

TEST(Partition, EverySampleHasExactlyOneOwnerAndEveryOwnerASample) {
  for (const std::int64_t samples : {7, 64, 1000}) {
    const auto labels = cyclic_labels(samples, 10);
    for (const int workers : {1, 2, 3, 7}) {
      for (const PartitionKind kind :
           {PartitionKind::kRandom, PartitionKind::kSorted, PartitionKind::kDirichlet}) {
        for (const double alpha : {1e-6, 0.1, 1.0, 1e6}) {
          const auto parts = partition(kind, labels, workers, alpha, 5);
          ASSERT_EQ(parts.size(), static_cast<std::size_t>(workers));
          std::vector<std::int64_t> all;
          for (const auto& part : parts) {
            EXPECT_FALSE(part.empty());
            all.insert(all.end(), part.begin(), part.end());
            if (kind != PartitionKind::kDirichlet) {
              EXPECT_LE(std::abs(static_cast<double>(part.size()) -
                                 static_cast<double>(samples) / workers),
                        1.0);
            }
          }
          std::sort(all.begin(), all.end());
          ASSERT_EQ(all.size(), static_cast<std::size_t>(samples));
          for (std::int64_t i = 0; i < samples; ++i) {
            ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
          }
        }
      }
    }
  }
}

TEST(Partition, NoneGivesEveryoneEverything) {
  const auto parts = partition(PartitionKind::kNone, cyclic_labels(5, 2), 8, 1, 0);
  ASSERT_EQ(parts.size(), 8U);
  for (const auto& part : parts) EXPECT_EQ(part, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(Partition, SortedGivesEachWorkerItsOwnClasses) {
  const auto labels = cyclic_labels(100, 10);
  const auto parts = partition(PartitionKind::kSorted, labels, 5, 1, 0);
  for (std::size_t w = 0; w < 5; ++w) {
    std::set<std::int64_t> classes;
    for (const std::int64_t i : parts[w]) classes.insert(labels[static_cast<std::size_t>(i)]);
    EXPECT_EQ(classes, (std::set<std::int64_t>{static_cast<std::int64_t>(2 * w),
                                               static_cast<std::int64_t>(2 * w + 1)}));
  }
}

double classes_per_worker(double alpha) {
  const auto labels = cyclic_labels(5000, 10);
  double classes = 0;
  for (const auto& part : partition(PartitionKind::kDirichlet, labels, 10, alpha, 9)) {
    std::set<std::int64_t> seen;
    for (const std::int64_t i : part) seen.insert(labels[static_cast<std::size_t>(i)]);
    classes += static_cast<double>(seen.size()) / 10;
  }
  return classes;
}

TEST(Partition, ASmallAlphaGivesAClassToFewWorkersALargeOneToAll) {
  EXPECT_LT(classes_per_worker(0.02), 3.0);
  EXPECT_EQ(classes_per_worker(100.0), 10.0);
  const auto labels = cyclic_labels(5000, 10);
  for (const auto& part : partition(PartitionKind::kDirichlet, labels, 5, 1e7, 9)) {
    EXPECT_NEAR(static_cast<double>(part.size()), 1000.0, 20.0);
  }
}

TEST(Partition, DependsOnTheSeedAlone) {
  const auto labels = cyclic_labels(200, 10);
  for (const PartitionKind kind : {PartitionKind::kRandom, PartitionKind::kDirichlet}) {
    EXPECT_EQ(partition(kind, labels, 4, 0.5, 1), partition(kind, labels, 4, 0.5, 1));
    EXPECT_NE(partition(kind, labels, 4, 0.5, 1), partition(kind, labels, 4, 0.5, 2));
  }
}

TEST(Partition, SenselessRequestsAreRefused) {
  const auto labels = cyclic_labels(3, 2);
  EXPECT_THROW(partition(PartitionKind::kRandom, labels, 4, 1, 0), ConfigError);
  EXPECT_THROW(partition(PartitionKind::kRandom, labels, 0, 1, 0), ConfigError);
  EXPECT_THROW(partition(PartitionKind::kDirichlet, labels, 2, 0, 0), ConfigError);
  EXPECT_EQ(partition_kind("dirichlet"), PartitionKind::kDirichlet);
  EXPECT_THAT(message_of<ConfigError>([] { partition_kind("dirichle"); }),
              HasSubstr("none, random, sorted, dirichlet"));
}

}  // namespace
}  // namespace cohort::data::test
