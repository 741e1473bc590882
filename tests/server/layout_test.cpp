#include "server/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/error.h"
#include "server/job_spec.h"

namespace cohort::server {
namespace {

// A model in its own order; the arena holds it last layer first.
std::vector<ShardTensor> arena_of(std::vector<ShardTensor> model) {
  std::reverse(model.begin(), model.end());
  std::int64_t at = 0;
  for (ShardTensor& tensor : model) {
    tensor.range = {at, std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1},
                                        std::multiplies<>())};
    at += tensor.range.size;
  }
  return model;
}

std::vector<ShardTensor> tensorflow_mnist() {
  return arena_of({{.name = "W1", .shape = {784, 100}, .range = {}},
                   {.name = "W2", .shape = {100, 10}, .range = {}},
                   {.name = "b1", .shape = {100}, .range = {}},
                   {.name = "b2", .shape = {10}, .range = {}}});
}

std::map<std::string, int> servers_of(const Layout& layout) {
  std::map<std::string, int> found;
  for (const Block& block : layout.blocks) found[block.name] = block.server;
  return found;
}

TEST(Layout, WholeTensorsGoRoundAfterTheCountOfUpdates) {
  using Servers = std::map<std::string, int>;
  EXPECT_EQ(servers_of(shard(tensorflow_mnist(), 2, Sharding::kWhole)),
            (Servers{{"W1", 1}, {"W2", 0}, {"b1", 1}, {"b2", 0}}));
  EXPECT_EQ(servers_of(shard(tensorflow_mnist(), 3, Sharding::kWhole)),
            (Servers{{"W1", 1}, {"W2", 2}, {"b1", 0}, {"b2", 1}}));
  EXPECT_EQ(servers_of(shard(tensorflow_mnist(), 1, Sharding::kWhole)),
            (Servers{{"W1", 0}, {"W2", 0}, {"b1", 0}, {"b2", 0}}));
}

TEST(Layout, AServersArenaIsInTheOrderOfTheWorkers) {
  const Layout layout = shard(tensorflow_mnist(), 1, Sharding::kWhole);
  std::vector<std::string> names;
  for (const Block& block : layout.of_server(0)) {
    names.push_back(block.name);
    EXPECT_EQ(block.place, block.range.begin);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"b2", "b1", "W2", "W1"}));
}

// Worked by hand from Paddle's slice_variable.
TEST(Layout, SlicesAreThoseOfPaddle) {
  const auto blocks = [](std::vector<std::int64_t> shape, int servers) {
    std::vector<std::int64_t> sizes;
    const auto tensors = arena_of({{.name = "w", .shape = std::move(shape), .range = {}}});
    auto found = shard(tensors, servers, Sharding::kSliced).blocks;
    std::sort(found.begin(), found.end(),
              [](const Block& a, const Block& b) { return a.range.begin < b.range.begin; });
    for (const Block& block : found) sizes.push_back(block.range.size);
    return sizes;
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(blocks({8191}, 4), (Sizes{8191}));         // below twice the minimum: whole
  EXPECT_EQ(blocks({16383}, 4), (Sizes{16383}));       // floor(16383 / 8192) = 1
  EXPECT_EQ(blocks({16384}, 4), (Sizes{8192, 8192}));  // 2 of 4 servers
  EXPECT_EQ(blocks({100000}, 3), (Sizes{33334, 33334, 33332}));
  EXPECT_EQ(blocks({784, 100}, 4), (Sizes{19600, 19600, 19600, 19600}));
  EXPECT_EQ(blocks({10, 4096}, 4), (Sizes{12288, 12288, 12288, 4096}));  // 10240 up to whole rows
  EXPECT_EQ(blocks({3, 10000}, 3), (Sizes{10000, 10000, 10000}));
  EXPECT_EQ(blocks({2, 40000}, 4), (Sizes{40000, 40000}));  // two rows: two blocks
  EXPECT_EQ(blocks({1, 100000}, 4), (Sizes{100000}));
}

TEST(Layout, SlicesAreDealtInTurnOverTheWholeList) {
  const auto tensors = arena_of({{.name = "a", .shape = {20000}, .range = {}},
                                 {.name = "b", .shape = {10}, .range = {}},
                                 {.name = "c", .shape = {40000}, .range = {}}});
  using Servers = std::map<std::string, int>;
  EXPECT_EQ(servers_of(shard(tensors, 3, Sharding::kSliced)), (Servers{{"a.block0", 0},
                                                                       {"a.block1", 1},
                                                                       {"b", 2},
                                                                       {"c.block0", 0},
                                                                       {"c.block1", 1},
                                                                       {"c.block2", 2}}));
}

TEST(Layout, TheHashOfANameIsTheSameEverywhere) {
  const auto tensors = arena_of(
      {{.name = "a", .shape = {9}, .range = {}}, {.name = "foobar", .shape = {5}, .range = {}}});
  // Published values of FNV-1a with 64 bits.
  const std::map<std::string, std::uint64_t> hashes = {{"a", 0xaf63dc4c8601ec8cU},
                                                       {"foobar", 0x85944171f73967e8U}};
  for (const std::uint64_t servers : {1U, 2U, 7U, 1000U}) {
    const Layout layout = shard(tensors, static_cast<int>(servers), Sharding::kHash);
    for (const Block& block : layout.blocks) {
      EXPECT_EQ(block.server, static_cast<int>(hashes.at(block.name) % servers));
    }
  }
}

TEST(Layout, EveryElementIsAtExactlyOnePlace) {
  const auto tensors = arena_of({{.name = "a", .shape = {64, 3, 7, 7}, .range = {}},
                                 {.name = "empty", .shape = {0}, .range = {}},
                                 {.name = "b", .shape = {64}, .range = {}},
                                 {.name = "c", .shape = {1000, 512}, .range = {}},
                                 {.name = "d", .shape = {}, .range = {}}});
  const std::int64_t total = tensors.back().range.end();
  for (const Sharding sharding : {Sharding::kWhole, Sharding::kSliced, Sharding::kHash}) {
    for (int servers = 1; servers <= 9; ++servers) {
      const Layout layout = shard(tensors, servers, sharding);
      std::vector<int> seen(static_cast<std::size_t>(total));
      for (const Block& block : layout.blocks) {
        for (std::int64_t i = block.range.begin; i < block.range.end(); ++i) {
          ++seen[static_cast<std::size_t>(i)];
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), total);
      ASSERT_EQ(layout.sizes.size(), static_cast<std::size_t>(servers));
      for (int server = 0; server < servers; ++server) {
        std::int64_t place = 0, begin = -1;
        for (const Block& block : layout.of_server(server)) {
          EXPECT_EQ(block.place, place);
          EXPECT_GT(block.range.begin, begin);
          begin = block.range.begin;
          place += block.range.size;
        }
        EXPECT_EQ(place, layout.sizes[static_cast<std::size_t>(server)]);
      }
    }
  }
}

TEST(Layout, DecayIsMergedWhereNeighboursAgree) {
  auto tensors = arena_of({{.name = "w", .shape = {6}, .range = {}, .weight_decay = 0.1},
                           {.name = "v", .shape = {4}, .range = {}, .weight_decay = 0.1},
                           {.name = "b", .shape = {3}, .range = {}, .weight_decay = 0}});
  const auto ranges = decay_ranges(shard(tensors, 1, Sharding::kWhole).of_server(0));
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].range, (Range{0, 3}));
  EXPECT_EQ(ranges[1].range, (Range{3, 10}));
  EXPECT_EQ(ranges[1].weight_decay, 0.1);
}

TEST(Layout, UnknownShardingsAreNamedWithTheKnown) {
  EXPECT_EQ(parse_sharding("sliced"), Sharding::kSliced);
  try {
    parse_sharding("slices");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("whole, sliced, hash"), std::string::npos);
  }
}

}  // namespace
}  // namespace cohort::server
