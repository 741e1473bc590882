#include "models/synchronised_batch_norm.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/layers.h"
#include "models/model_testing.h"
#include "transport/rank_threads.h"

namespace cohort::models {
namespace {

constexpr std::int64_t kChannels = 5;

// Sums over the threads of a test, in the order of their ranks.
class Group {
 public:
  explicit Group(int size) : parts_(size) {}

  StatisticsSum sum_of(Rank rank) {
    return [this, rank](at::Tensor& values) {
      ASSERT_TRUE(values.is_contiguous() && values.dim() == 1);
      std::unique_lock<std::mutex> lock(mutex_);
      parts_[rank] = values.clone();
      meet(lock);
      values.copy_(parts_[0]);
      for (std::size_t i = 1; i < parts_.size(); ++i) values.add_(parts_[i]);
      meet(lock);
    };
  }

 private:
  void meet(std::unique_lock<std::mutex>& lock) {
    const int round = round_;
    if (++arrived_ == static_cast<int>(parts_.size())) {
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
    } else if (!all_here_.wait_until(lock, transport::far(), [&] { return round_ != round; })) {
      throw PeerError("a rank did not come");
    }
  }

  std::mutex mutex_;  // guards the rest
  std::condition_variable all_here_;
  std::vector<at::Tensor> parts_;
  int arrived_ = 0;
  int round_ = 0;
};

// What one call of the layer leaves behind.
struct Outcome {
  at::Tensor output;
  at::Tensor input_gradient;
  at::Tensor weight_gradient;
  at::Tensor bias_gradient;
  std::vector<at::Tensor> buffers;
};

std::vector<at::Tensor> values_of(const std::deque<Buffer>& buffers) {
  std::vector<at::Tensor> values;
  for (const Buffer& buffer : buffers) values.push_back(buffer.value);
  return values;
}

// `steps` times forward and backward on the same batch; the outcome of the last.
Outcome normalise(const at::Tensor& input, const at::Tensor& output_gradient,
                  const StatisticsSum& sum, int steps = 2) {
  ParameterStore store(seeded(1));
  const BatchNorm2d layer(Scope(store) / "bn", kChannels);
  store.parameters()[0].value.detach().copy_(at::randn({kChannels}, seeded(2)));
  store.parameters()[1].value.detach().copy_(at::randn({kChannels}, seeded(3)));
  store.set_statistics_sum(sum);
  Outcome outcome;
  for (int step = 0; step < steps; ++step) {
    for (Parameter& parameter : store.parameters()) parameter.value.mutable_grad().reset();
    const at::Tensor leaf = input.detach().requires_grad_();
    const at::Tensor output = layer(leaf);
    output.backward(output_gradient);
    outcome = {output.detach(), leaf.grad(), store.parameters()[0].value.grad(),
               store.parameters()[1].value.grad(), values_of(store.buffers())};
  }
  return outcome;
}

std::vector<Outcome> normalise_split(const at::Tensor& input, const at::Tensor& output_gradient,
                                     const std::vector<std::int64_t>& split) {
  const int ranks = static_cast<int>(split.size());
  Group group(ranks);
  const std::vector<at::Tensor> inputs = input.split_with_sizes(split);
  const std::vector<at::Tensor> gradients = output_gradient.split_with_sizes(split);
  const auto format = input.suggest_memory_format();
  std::vector<Outcome> outcomes(ranks);
  const std::vector<std::string> errors = transport::run_ranks(ranks, [&](Rank rank) {
    outcomes[rank] = normalise(inputs[rank].contiguous(format), gradients[rank].contiguous(format),
                               group.sum_of(rank));
  });
  EXPECT_EQ(errors, std::vector<std::string>(ranks));
  return outcomes;
}

at::Tensor joined(const std::vector<Outcome>& outcomes, at::Tensor Outcome::*member) {
  std::vector<at::Tensor> parts;
  for (const Outcome& outcome : outcomes) parts.push_back(outcome.*member);
  return at::cat(parts);
}

at::Tensor summed(const std::vector<Outcome>& outcomes, at::Tensor Outcome::*member) {
  at::Tensor sum = at::zeros({kChannels});
  for (const Outcome& outcome : outcomes) sum.add_(outcome.*member);
  return sum;
}

void expect_near(const at::Tensor& seen, const at::Tensor& wanted, double tolerance = 1e-5) {
  ASSERT_EQ(seen.sizes(), wanted.sizes());
  const double scale = std::max(1.0, wanted.abs().max().item<double>());
  EXPECT_LE(seen.sub(wanted).abs().max().item<double>(), tolerance * scale);
}

class SynchronisedBatchNormSplit : public testing::TestWithParam<std::vector<std::int64_t>> {};

TEST_P(SynchronisedBatchNormSplit, EqualsOneLayerOnTheWholeBatch) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor input =
        at::randn({8, kChannels, 3, 4}, seeded(4)).mul(2).add(5).contiguous(format);
    const at::Tensor gradient = at::randn(input.sizes(), seeded(5)).contiguous(format);
    const Outcome whole = normalise(input, gradient, {});
    const std::vector<Outcome> split = normalise_split(input, gradient, GetParam());

    expect_near(joined(split, &Outcome::output), whole.output);
    expect_near(joined(split, &Outcome::input_gradient), whole.input_gradient);
    expect_near(summed(split, &Outcome::weight_gradient), whole.weight_gradient);
    expect_near(summed(split, &Outcome::bias_gradient), whole.bias_gradient);
    for (const Outcome& rank : split) {
      EXPECT_TRUE(rank.output.is_contiguous(format));
      ASSERT_EQ(rank.buffers.size(), whole.buffers.size());
      for (std::size_t i = 0; i < whole.buffers.size(); ++i) {
        expect_near(rank.buffers[i].to(at::kFloat), whole.buffers[i].to(at::kFloat));
        EXPECT_TRUE(rank.buffers[i].equal(split[0].buffers[i])) << "the ranks differ";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Splits, SynchronisedBatchNormSplit,
                         testing::Values(std::vector<std::int64_t>{8},
                                         std::vector<std::int64_t>{4, 4},
                                         std::vector<std::int64_t>{1, 7},
                                         std::vector<std::int64_t>{3, 0, 5},
                                         std::vector<std::int64_t>{0, 8}));

TEST(SynchronisedBatchNorm, GivesTheSameBitsTwice) {
  const at::Tensor input = at::randn({16, kChannels, 9, 7}, seeded(4));
  const at::Tensor gradient = at::randn(input.sizes(), seeded(5));
  const std::vector<Outcome> first = normalise_split(input, gradient, {5, 11});
  for (int repeat = 0; repeat < 5; ++repeat) {
    const std::vector<Outcome> again = normalise_split(input, gradient, {5, 11});
    for (const auto member : {&Outcome::output, &Outcome::input_gradient}) {
      EXPECT_TRUE(joined(again, member).equal(joined(first, member)));
    }
    EXPECT_TRUE(again[1].weight_gradient.equal(first[1].weight_gradient));
    EXPECT_TRUE(again[1].buffers[1].equal(first[1].buffers[1]));
  }
}

TEST(SynchronisedBatchNorm, KeepsItsPrecisionWhereTheMeanIsLarge) {
  const at::Tensor input = at::randn({8, kChannels, 16, 16}, seeded(4)).add(100);
  const at::Tensor gradient = at::randn(input.sizes(), seeded(5));
  Group group(2);
  const std::vector<at::Tensor> inputs = input.split(4);
  const std::vector<at::Tensor> gradients = gradient.split(4);
  at::Tensor running_var;
  transport::run_ranks(2, [&](Rank rank) {
    const Outcome outcome =
        normalise(inputs[rank], gradients[rank], group.sum_of(rank), /*steps=*/100);
    if (rank == 0) running_var = outcome.buffers[1];
  });
  // About 0, the variance 1 beside 100^2 would keep three or four digits.
  const at::Tensor wanted = input.to(at::kDouble).var(std::vector<std::int64_t>{0, 2, 3});
  EXPECT_LT(running_var.to(at::kDouble).sub(wanted).abs().max().item<double>(), 1e-4);
}

TEST(SynchronisedBatchNorm, TrainsOnOneValueARankButRefusesOneInAll) {
  Group group(2);
  const at::Tensor one = at::randn({1, kChannels, 1, 1}, seeded(4));
  const at::Tensor none = at::empty({0, kChannels, 1, 1});
  transport::run_ranks(2, [&](Rank rank) {
    const Outcome outcome = normalise(one.mul(rank + 1), one, group.sum_of(rank));
    EXPECT_TRUE(outcome.output.isfinite().all().item<bool>());
  });
  transport::run_ranks(2, [&](Rank rank) {
    ParameterStore store(seeded(1));
    const BatchNorm2d layer(Scope(store) / "bn", kChannels);
    store.set_statistics_sum(group.sum_of(rank));
    EXPECT_THROW(layer(rank == 0 ? one : none), RunError);
    EXPECT_TRUE(store.buffers()[1].value.equal(at::ones({kChannels})));
    EXPECT_EQ(store.buffers()[2].value.item<std::int64_t>(), 0);
  });
}

TEST(SynchronisedBatchNorm, LeavesTheRunningStatisticsAloneWithoutAnySample) {
  const at::Tensor none = at::empty({0, kChannels, 2, 2});
  const Outcome outcome = normalise(none, none, [](at::Tensor&) {});
  EXPECT_TRUE(outcome.buffers[0].equal(at::zeros({kChannels})));
  EXPECT_TRUE(outcome.buffers[1].equal(at::ones({kChannels})));
  EXPECT_TRUE(outcome.weight_gradient.equal(at::zeros({kChannels})));
}

TEST(SynchronisedBatchNorm, AsksNobodyInEvaluation) {
  ParameterStore store(seeded(1));
  const BatchNorm2d layer(Scope(store) / "bn", kChannels);
  store.set_statistics_sum([](at::Tensor&) { FAIL() << "called"; });
  store.set_training(false);
  layer(at::ones({2, kChannels, 2, 2}));
}

TEST(SynchronisedBatchNorm, PassesOnWhatTheSumThrowsInTheBackwardPass) {
  ParameterStore store(seeded(1));
  const BatchNorm2d layer(Scope(store) / "bn", kChannels);
  bool gone = false;
  store.set_statistics_sum([&](at::Tensor&) {
    if (gone) throw PeerError("rank 1 has left");
  });
  const at::Tensor output = layer(at::randn({2, kChannels, 2, 2}, seeded(4)));
  gone = true;
  EXPECT_THROW(output.sum().backward(), PeerError);
}

// A rank without samples in a step must reach every sum of the others, in both passes.
class EmptyBatch : public testing::TestWithParam<std::string> {};

TEST_P(EmptyBatch, PassesThroughTheModelAndMakesAllItsSums) {
  if (is_like_another_vgg(GetParam())) GTEST_SKIP() << "vgg16 and vgg11_bn stand for it";
  if (takes_text(GetParam())) GTEST_SKIP() << "no worker is without columns of a text";
  ModelOptions options = usual_options(GetParam());
  options.classes = 10;
  options.height = options.width = smallest_size(GetParam());
  std::vector<std::vector<std::int64_t>> calls;
  for (const std::int64_t samples : {2, 0}) {
    const std::unique_ptr<Model> model = models().make(GetParam(), options, seeded(1));
    for (Parameter& parameter : model->store().parameters()) {
      parameter.gradient = at::zeros_like(parameter.value);
    }
    std::vector<std::int64_t>& sizes = calls.emplace_back();
    model->store().set_statistics_sum([&](at::Tensor& values) { sizes.push_back(values.numel()); });
    const at::Tensor input =
        at::randn({samples, options.channels, options.height, options.width}, seeded(2));
    const at::Tensor labels = at::zeros({samples}, at::kLong);
    const auto loss_of = [&](const at::Tensor& logits) {
      return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
    };
    at::Tensor loss = loss_of(model->forward(input));
    for (const AuxiliaryOutput& output : model->auxiliary())
      loss = loss.add(loss_of(output.logits));
    loss.backward();
    if (samples > 0) continue;
    EXPECT_EQ(loss.item<float>(), 0);
    for (const Parameter& parameter : model->store().parameters()) {
      EXPECT_EQ(parameter.gradient.abs().sum().item<float>(), 0) << parameter.name;
      if (!parameter.value.grad().defined()) continue;
      EXPECT_EQ(parameter.value.grad().abs().sum().item<float>(), 0) << parameter.name;
    }
  }
  EXPECT_EQ(calls[1], calls[0]);
}

INSTANTIATE_TEST_SUITE_P(Models, EmptyBatch, testing::ValuesIn(models().names()),
                         [](const auto& model) {
                           std::string name = model.param;
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace cohort::models
