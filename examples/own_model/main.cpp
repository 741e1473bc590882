// A network of one's own, trained with Cohort's engine on generated data.
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>

#include "core/random.h"
#include "data/synthetic.h"
#include "engine/generator.h"
#include "engine/progress.h"
#include "engine/train.h"
#include "methods/local.h"
#include "metrics/run_totals.h"
#include "models/layers.h"

namespace {

constexpr cohort::Seed kSeed = 7;
constexpr cohort::data::SampleShape kShape{3, 16, 16};
constexpr std::int64_t kClasses = 4;

// Layers register their parameters under the names of their scope.
class SmallNet final : public cohort::models::Model {
 public:
  explicit SmallNet(at::Generator generator)
      : Model(std::move(generator)),
        conv_(cohort::models::Scope(store()) / "conv", kShape.channels, 8, 3, {.padding = 1}),
        norm_(cohort::models::Scope(store()) / "norm", 8),
        fc_(cohort::models::Scope(store()) / "fc", 8 * 8 * 8, kClasses) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    const at::Tensor hidden = cohort::models::relu_in_place(norm_(conv_(inputs)));
    return fc_(cohort::models::flatten_samples(cohort::models::max_pool(hidden, 2)));
  }

 private:
  cohort::models::Conv2d conv_;
  cohort::models::BatchNorm2d norm_;
  cohort::models::Linear fc_;
};

double train() {
  const cohort::data::SyntheticDataset train_set(kShape, kClasses, 2000, kSeed, "train");
  const cohort::data::SyntheticDataset test_set(kShape, kClasses, 500, kSeed, "test");
  const cohort::data::SampleOrder order({.samples = train_set.size(), .batch = 50, .seed = kSeed});

  SmallNet model(cohort::engine::make_generator(cohort::derive_seed(kSeed, "initialize")));
  cohort::methods::Replica replica(model, {.optimizer = "sgd", .weight_decay = 1e-4});
  cohort::methods::Local method;
  const auto schedule =
      cohort::schedules::schedules().make("cosine", {.lr = 0.05, .total_epochs = 2});

  cohort::metrics::TotalsSink metrics;
  const auto progress = cohort::engine::make_plain_progress(stdout, metrics);
  cohort::engine::TrainerOptions options;
  options.step.seed = kSeed;
  options.total_steps = 2 * order.steps_per_epoch();
  options.eval_every_epochs = 1;
  const std::atomic<bool> stop = false;
  return cohort::engine::train({.model = model,
                                .replica = replica,
                                .method = method,
                                .schedule = *schedule,
                                .train = train_set,
                                .test = &test_set,
                                .order = order,
                                .outlets = {&metrics, progress.get()}},
                               options, stop)
      .last->top1;
}

}  // namespace

int main() {
  try {
    std::printf("accuracy %.3f\n", train());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_model: %s\n", error.what());
    return 1;
  }
}
