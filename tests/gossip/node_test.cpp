// Lost, doubled and early frames, and lost neighbours.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "world.h"

namespace cohort::gossip {
namespace {

void change(World& world, int step) {
  for (std::size_t i = 0; i < world.x.size(); ++i) {
    RandomStream random(9, "change", {i, static_cast<std::uint64_t>(step)});
    for (float& value : world.x[i]) value += 0.1F * static_cast<float>(random.normal());
  }
}

std::vector<std::vector<float>> after(World& world, int steps) {
  world.start();
  for (int step = 0; step < steps; ++step) {
    change(world, step);
    EXPECT_TRUE(world.round()) << "round " << step;
  }
  return world.x;
}

WorldOptions options_of(const std::string& algorithm) {
  return {.algorithm = algorithm,
          .compressor = algorithm == "d-psgd" ? "none"
                        : algorithm == "ecd"  ? "fp16"
                                              : "sign",
          .stepsize = 0.3};
}

TEST(Node, LostAndDoubledFramesChangeNothing) {
  for (const auto& entry : gossip_algorithms().entries()) {
    SCOPED_TRACE(entry.name);
    World calm(options_of(entry.name));
    const auto expected = after(calm, 15);
    World rough(options_of(entry.name));
    RandomStream random(4, "fate");
    rough.fate = [&](Rank, Rank, const Bytes&) {
      const double chance = random.uniform();
      return chance < 0.1 ? 0 : chance < 0.2 ? 2 : 1;
    };
    EXPECT_EQ(after(rough, 15), expected);
    std::uint64_t again = 0;
    std::uint64_t doubled = 0;
    for (const auto& node : rough.nodes) {
      again += node->counts().again;
      doubled += node->counts().doubled;
      EXPECT_EQ(node->counts().rebuilt, 0U);
    }
    EXPECT_GT(again, 0U);
    EXPECT_GT(doubled, 0U);
  }
}

TEST(Node, ADamagedMessageIsMendedFromTheNeighboursEstimates) {
  World world(options_of("choco"));
  int damaged = 0;
  world.start();
  for (int step = 0; step < 30; ++step) {
    change(world, step);
    for (std::size_t i = 0; i < world.nodes.size(); ++i) world.nodes[i]->begin_round(world.x[i]);
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      for (const auto& one : world.nodes[i]->take_outgoing()) {
        Bytes frame = *one.frame;
        if (step == 7 && i == 2 && one.to == 3) {
          frame.back() ^= std::byte{1};
          ++damaged;
        }
        world.nodes[static_cast<std::size_t>(one.to)]->on_frame(static_cast<Rank>(i), frame);
      }
    }
    world.carry();
    ASSERT_TRUE(world.all_complete()) << step;
    for (std::size_t i = 0; i < world.nodes.size(); ++i) world.nodes[i]->end_round(world.x[i]);
  }
  EXPECT_EQ(damaged, 1);
  EXPECT_EQ(world.nodes[3]->counts().rebuilt, 1U);
  World calm(options_of("choco"));
  const auto expected = after(calm, 30);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t c = 0; c < expected[i].size(); ++c) {
      EXPECT_NEAR(world.x[i][c], expected[i][c], 1e-4);
    }
  }
}

TEST(Node, ALostNeighboursWeightGoesToTheRankItself) {
  for (const auto& entry : gossip_algorithms().entries()) {
    SCOPED_TRACE(entry.name);
    World world({.algorithm = entry.name, .stepsize = 0.5});
    // Equal models and no steps: whatever the weights, rows that sum to 1 change nothing.
    for (auto& x : world.x) std::fill(x.begin(), x.end(), 1.5F);
    world.start();
    for (int step = 0; step < 10; ++step) ASSERT_TRUE(world.round());
    world.alive[3] = false;
    for (const std::size_t i : {2U, 4U}) world.nodes[i]->on_lost(3);
    for (int step = 0; step < 10; ++step) ASSERT_TRUE(world.round()) << step;
    for (std::size_t i = 0; i < world.x.size(); ++i) {
      for (const float value : world.x[i]) EXPECT_NEAR(value, 1.5F, 2e-5F) << i;
    }
  }
}

TEST(Node, ANeighbourLostInTheMiddleOfARoundIsReplacedToo) {
  for (const auto& entry : gossip_algorithms().entries()) {
    SCOPED_TRACE(entry.name);
    World world({.algorithm = entry.name, .stepsize = 0.5});
    for (auto& x : world.x) std::fill(x.begin(), x.end(), 1.5F);
    world.start();
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(world.round());
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      if (i != 3) world.nodes[i]->begin_round(world.x[i]);
    }
    world.alive[3] = false;
    world.carry();
    EXPECT_FALSE(world.nodes[2]->complete());
    EXPECT_EQ(world.nodes[2]->awaited(), std::vector<Rank>{3});
    for (const std::size_t i : {2U, 4U}) world.nodes[i]->on_lost(3);
    world.carry();
    ASSERT_TRUE(world.all_complete());
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      if (i != 3) world.nodes[i]->end_round(world.x[i]);
    }
    for (int step = 0; step < 5; ++step) ASSERT_TRUE(world.round());
    for (std::size_t i = 0; i < world.x.size(); ++i) {
      for (const float value : world.x[i]) EXPECT_NEAR(value, 1.5F, 2e-5F) << i;
    }
  }
}

TEST(Node, ANeighbourThatComesBackIsOneOfThemAgain) {
  std::vector<WorldOptions> all;
  for (const auto& entry : gossip_algorithms().entries()) {
    all.push_back({.algorithm = entry.name, .stepsize = 0.5});
  }
  all.push_back({.algorithm = "choco", .stepsize = 0.5, .estimates_from_zero = true});
  for (const WorldOptions& options : all) {
    SCOPED_TRACE(options.algorithm);
    World world(options);
    world.start();
    for (int step = 0; step < 3; ++step) {
      change(world, step);
      ASSERT_TRUE(world.round());
    }
    world.alive[3] = false;
    for (const std::size_t i : {2U, 4U}) EXPECT_TRUE(world.nodes[i]->on_lost(3));
    EXPECT_FALSE(world.nodes[2]->on_lost(3)) << "news once";
    for (int step = 3; step < 6; ++step) {
      change(world, step);
      ASSERT_TRUE(world.round());
    }
    // It begins with the first one's model, as one that has just been started.
    world.make_again(3);
    world.x[3] = world.x[0];
    const auto estimate = world.nodes[0]->own_estimate();
    world.nodes[3]->enter(6, world.x[3], estimate);
    world.alive[3] = true;
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      if (i != 3) world.nodes[i]->on_returned(3);
    }
    // Without changes all come together, with the weights that they had in the beginning: on their
    // mean, which a rank left out or counted twice would draw away.
    std::vector<double> mean(world.x[0].size());
    for (const auto& x : world.x) {
      for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += static_cast<double>(x[c]) / 8;
    }
    for (int step = 0; step < 300; ++step) ASSERT_TRUE(world.round()) << step;
    for (std::size_t i = 0; i < world.x.size(); ++i) {
      for (std::size_t c = 0; c < mean.size(); ++c) {
        EXPECT_NEAR(world.x[i][c], mean[c], options.algorithm == "ecd" ? 0.02 : 2e-3) << i;
      }
    }
  }
}

TEST(Node, GoesOnFromItsSavedStateBitForBit) {
  for (const auto& entry : gossip_algorithms().entries()) {
    SCOPED_TRACE(entry.name);
    World whole(options_of(entry.name));
    after(whole, 5);
    World resumed(options_of(entry.name));
    resumed.start();
    resumed.x = whole.x;
    for (std::size_t i = 0; i < whole.nodes.size(); ++i) {
      const auto from = whole.nodes[i]->vectors();
      const auto to = resumed.nodes[i]->vectors();
      ASSERT_EQ(from.size(), to.size());
      for (std::size_t v = 0; v < from.size(); ++v) {
        EXPECT_EQ(from[v].name, to[v].name);
        std::copy(from[v].values.begin(), from[v].values.end(), to[v].values.begin());
      }
      for (const auto& [name, value] : whole.nodes[i]->numbers()) {
        resumed.nodes[i]->set_number(name, value);
      }
    }
    for (World* world : {&whole, &resumed}) {
      for (int step = 5; step < 9; ++step) {
        change(*world, step);
        ASSERT_TRUE(world->round());
      }
    }
    EXPECT_EQ(whole.x, resumed.x);
  }
}

TEST(Node, RefusesStrangersAndNonsense) {
  World world(options_of("choco"));
  world.start();
  ASSERT_TRUE(world.round());
  const Bytes frame = gossip_frame({GossipKind::kMessage, 2, 1}, {});
  EXPECT_THROW(world.nodes[0]->on_frame(4, frame), PeerError);
  EXPECT_THROW(world.nodes[0]->on_frame(1, Bytes(10)), PeerError);
  EXPECT_THROW(world.nodes[0]->on_frame(1, gossip_frame({GossipKind::kMessage, 500, 1}, {})),
               PeerError);
  // Chosen so that a wrong length of an estimate is noticed where one is wanted.
  world.nodes[0]->on_lost(7);
  world.nodes[0]->begin_round(world.x[0]);
  EXPECT_THROW(world.nodes[0]->on_frame(1, gossip_frame({GossipKind::kState, 1, 1}, Bytes(8))),
               PeerError);
}

TEST(Node, EarlyMessagesWaitForTheirRound) {
  World world(options_of("choco"));
  world.start();
  change(world, 0);
  world.nodes[1]->begin_round(world.x[1]);
  for (const auto& one : world.nodes[1]->take_outgoing()) {
    world.nodes[static_cast<std::size_t>(one.to)]->on_frame(1, *one.frame);
  }
  for (const std::size_t i : {0U, 2U}) EXPECT_FALSE(world.nodes[i]->complete());
  for (std::size_t i = 0; i < world.nodes.size(); ++i) {
    if (i != 1) world.nodes[i]->begin_round(world.x[i]);
  }
  world.carry();
  EXPECT_TRUE(world.all_complete());
}

}  // namespace
}  // namespace cohort::gossip
