#include "server/arena_view.h"

#include <gtest/gtest.h>

#include <numeric>

namespace cohort::server {
namespace {

TEST(ArenaView, ShowsStretchesInItsOwnOrderAndJoinsNeighbours) {
  std::vector<float> vector(10);
  std::iota(vector.begin(), vector.end(), 0.0F);
  const auto all = std::span(vector);
  ArenaView<float> view;
  view.append(all.subspan(6, 2));
  view.append(all.subspan(8, 1));  // goes on from there
  view.append({});
  view.append(all.subspan(0, 3));
  ASSERT_EQ(view.size(), 6U);
  std::vector<float> seen;
  std::vector<std::size_t> lengths;
  for (std::size_t place = 0; place < view.size();) {
    const auto part = view.at(place, 100);
    seen.insert(seen.end(), part.begin(), part.end());
    lengths.push_back(part.size());
    place += part.size();
  }
  EXPECT_EQ(seen, (std::vector<float>{6, 7, 8, 0, 1, 2}));
  EXPECT_EQ(lengths, (std::vector<std::size_t>{3, 3}));
  EXPECT_EQ(view.at(1, 1).data(), vector.data() + 7);
  EXPECT_EQ(view.at(2, 2).size(), 1U);  // up to the end of its stretch
  EXPECT_TRUE(view.at(6, 1).empty());
}

TEST(ArenaView, OfAVectorIsTheVector) {
  const std::vector<float> vector(5, 1.0F);
  const ArenaView<const float> view = vector;
  EXPECT_EQ(view.at(0, 99).data(), vector.data());
  EXPECT_EQ(view.size_bytes(), 20U);
  EXPECT_EQ(ArenaView<const float>().size(), 0U);
}

}  // namespace
}  // namespace cohort::server
