#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "optimizers/optimizer.h"

namespace cohort::optimizers {
namespace {

struct Vectors {
  explicit Vectors(std::size_t n) : p(n), g(n), a(n), b(n) {
    RandomStream random(7, "optimizers");
    for (std::size_t i = 0; i < n; ++i) {
      p[i] = static_cast<float>(random.normal());
      g[i] = static_cast<float>(random.normal());
    }
  }
  UpdateBlock block(std::size_t begin, std::size_t size) {
    return {std::span(p).subspan(begin, size),
            std::span(g).subspan(begin, size),
            {std::span(a).subspan(begin, size), std::span(b).subspan(begin, size)}};
  }
  UpdateBlock block_with_moves() {
    UpdateBlock made = block(0, p.size());
    moves.assign(p.size(), 7.0F);
    made.moves = moves;
    return made;
  }
  std::vector<float> p, g, a, b, moves;
};

class EveryOptimizer : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Registry, EveryOptimizer, testing::ValuesIn(optimizers().names()));

TEST_P(EveryOptimizer, GivesTheSameBitsWholeOrInPieces) {
  const auto optimizer = optimizers().make(GetParam(), OptimizerOptions{});
  Vectors whole(1000), pieces(1000);
  for (Step step = 0; step < 3; ++step) {
    const UpdateScalars scalars{
        .lr = 0.1, .weight_decay = 0.01, .gradient_scale = 0.5, .step = step};
    optimizer->update(whole.block(0, 1000), scalars);
    optimizer->update(pieces.block(0, 1), scalars);
    optimizer->update(pieces.block(1, 77), scalars);
    optimizer->update(pieces.block(78, 922), scalars);
  }
  EXPECT_EQ(whole.p, pieces.p);
}

TEST_P(EveryOptimizer, FindsTheMinimumOfAParabola) {
  const auto optimizer = optimizers().make(GetParam(), OptimizerOptions{});
  Vectors v(5);
  for (Step step = 0; step < 3000; ++step) {
    for (std::size_t i = 0; i < 5; ++i) v.g[i] = v.p[i] - static_cast<float>(i);
    optimizer->update(v.block(0, 5), {.lr = 0.01, .step = step});
  }
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(v.p[i], static_cast<float>(i), 1e-2);
}

TEST_P(EveryOptimizer, UsesNoMoreStateThanItNames) {
  const auto optimizer = optimizers().make(GetParam(), OptimizerOptions{});
  EXPECT_LE(optimizer->slots().size(), kMaxOptimizerSlots);
  Vectors v(8);
  optimizer->update(v.block(0, 8), {.lr = 0.1});
  const std::size_t used = optimizer->slots().size();
  EXPECT_THAT(v.b, testing::Each(used < 2 ? testing::Matcher<float>(0.0F) : testing::_));
  EXPECT_THAT(v.a, testing::Each(used < 1 ? testing::Matcher<float>(0.0F) : testing::_));
}

// The recurrences as the papers write them, in double precision, for one coordinate.
struct Reference {
  double p, m = 0, s = 0;
};

TEST(Sgd, FollowsItsRecurrenceWithMomentumDecayAndNesterov) {
  for (const bool nesterov : {false, true}) {
    const auto sgd = optimizers().make("sgd", {.momentum = 0.9, .nesterov = nesterov});
    Vectors v(1);
    Reference r{v.p[0]};
    for (Step step = 0; step < 20; ++step) {
      v.g[0] = std::sin(static_cast<float>(step));
      const double g = 0.5 * v.g[0] + 0.01 * r.p;
      r.m = 0.9 * r.m + g;
      r.p -= 0.1 * (nesterov ? g + 0.9 * r.m : r.m);
      sgd->update(v.block(0, 1),
                  {.lr = 0.1, .weight_decay = 0.01, .gradient_scale = 0.5, .step = step});
      EXPECT_NEAR(v.p[0], r.p, 1e-5);
    }
  }
}

TEST(Sgd, WithoutMomentumHasNoState) {
  const auto sgd = optimizers().make("sgd", {.momentum = 0});
  EXPECT_TRUE(sgd->slots().empty());
  Vectors v(1);
  v.p[0] = 1;
  v.g[0] = 2;
  sgd->update(v.block(0, 1), {.lr = 0.25});
  EXPECT_EQ(v.p[0], 0.5F);
}

TEST(Adam, FollowsItsRecurrenceWithBothKindsOfDecay) {
  for (const bool decoupled : {false, true}) {
    const auto adam = optimizers().make(decoupled ? "adamw" : "adam", OptimizerOptions{});
    Vectors v(1);
    Reference r{v.p[0]};
    for (Step step = 0; step < 20; ++step) {
      v.g[0] = std::cos(static_cast<float>(step));
      const double g = v.g[0] + (decoupled ? 0 : 0.1 * r.p);
      if (decoupled) r.p -= 0.01 * 0.1 * r.p;
      const double t = static_cast<double>(step) + 1;
      r.m = 0.9 * r.m + 0.1 * g;
      r.s = 0.999 * r.s + 0.001 * g * g;
      r.p -= 0.01 * (r.m / (1 - std::pow(0.9, t))) /
             (std::sqrt(r.s / (1 - std::pow(0.999, t))) + 1e-8);
      adam->update(v.block(0, 1), {.lr = 0.01, .weight_decay = 0.1, .step = step});
      EXPECT_NEAR(v.p[0], r.p, 1e-5);
    }
  }
}

// Closed forms in double precision; at the small rate no step is as large as the parameters' last
// bit.
TEST_P(EveryOptimizer, TellsItsStepHoweverSmallBesideTheParameters) {
  constexpr double kDecay = 1e-4;
  const std::string name = GetParam();
  for (const double lr : {0.1, 1e-9}) {
    for (const bool nesterov : {false, true}) {
      for (const double momentum : {0.0, 0.9}) {
        if (nesterov && momentum == 0) continue;
        const auto optimizer =
            optimizers().make(name, {.momentum = momentum, .nesterov = nesterov});
        Vectors v(50);
        std::vector<Reference> references;
        for (const float p : v.p) references.push_back({p});
        for (Step step = 0; step < 4; ++step) {
          optimizer->update(
              v.block_with_moves(),
              {.lr = lr, .weight_decay = kDecay, .gradient_scale = 0.5, .step = step});
          const double t = static_cast<double>(step) + 1;
          for (std::size_t i = 0; i < v.p.size(); ++i) {
            Reference& r = references[i];
            const double g = 0.5 * v.g[i] + (name == "adamw" ? 0 : kDecay * r.p);
            double direction = 0;
            if (name == "sgd") {
              r.m = momentum * r.m + g;
              direction = nesterov ? g + momentum * r.m : r.m;
            } else {
              r.m = 0.9 * r.m + 0.1 * g;
              r.s = 0.999 * r.s + 0.001 * g * g;
              direction =
                  r.m / (1 - std::pow(0.9, t)) / (std::sqrt(r.s / (1 - std::pow(0.999, t))) + 1e-8);
              if (name == "adamw") direction += kDecay * r.p;
            }
            r.p -= lr * direction;
            EXPECT_NEAR(v.moves[i] / lr, direction, 2e-4 * (0.1 + std::abs(direction))) << name;
          }
        }
      }
    }
  }
}

TEST(Optimizers, RefuseSettingsThatMakeNoSense) {
  EXPECT_THROW(optimizers().make("sgd", {.momentum = 1}), ConfigError);
  EXPECT_THROW(optimizers().make("sgd", {.momentum = 0, .nesterov = true}), ConfigError);
  EXPECT_THROW(optimizers().make("adam", {.beta2 = 1}), ConfigError);
  EXPECT_THROW(optimizers().make("sdg", OptimizerOptions{}), ConfigError);
}

}  // namespace
}  // namespace cohort::optimizers
