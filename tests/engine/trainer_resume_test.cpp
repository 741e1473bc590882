// A run that was interrupted and resumed is the run that was not, bit for bit.
#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/small_training.h"

namespace cohort::engine::test {
namespace {

struct State {
  at::Tensor parameters;
  at::Tensor statistics;
  std::vector<at::Tensor> slots;
  std::vector<at::Tensor> buffers;
};

State state_of(SmallTraining& training) {
  State state{training.replica.parameters().clone(), training.replica.statistics().clone(), {}, {}};
  for (const at::Tensor& slot : training.replica.slots()) state.slots.push_back(slot.clone());
  for (const models::Buffer& buffer : training.model->store().buffers()) {
    state.buffers.push_back(buffer.value.clone());
  }
  return state;
}

void expect_equal_bits(const State& a, const State& b) {
  EXPECT_TRUE(a.parameters.equal(b.parameters));
  EXPECT_TRUE(a.statistics.equal(b.statistics));
  ASSERT_EQ(a.slots.size(), b.slots.size());
  for (std::size_t i = 0; i < a.slots.size(); ++i) EXPECT_TRUE(a.slots[i].equal(b.slots[i])) << i;
  for (std::size_t i = 0; i < a.buffers.size(); ++i) {
    EXPECT_TRUE(a.buffers[i].equal(b.buffers[i])) << i;
  }
}

struct OptimizerAndLayout {
  std::string optimizer;
  bool channels_last;
};

class ResumedRun : public testing::TestWithParam<OptimizerAndLayout> {
 protected:
  SmallTrainingOptions options() const {
    return {.replica = replica_with(GetParam().optimizer, GetParam().channels_last),
            .lr = 0.01,
            .crop_flip = true};
  }
  State straight() const {
    SmallTraining training(options());
    training.run();
    return state_of(training);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ResumedRun,
    testing::Values(OptimizerAndLayout{"sgd", false}, OptimizerAndLayout{"sgd", true},
                    OptimizerAndLayout{"adam", false}, OptimizerAndLayout{"adamw", true}),
    [](const auto& each) {
      return each.param.optimizer + (each.param.channels_last ? "_channels_last" : "");
    });

TEST_P(ResumedRun, EqualsAnUninterruptedOneBitForBit) {
  const State expected = straight();
  for (const Step pause : {1, 7, 17, 39}) {  // 7 is the end of an epoch
    storage::test::TemporaryFolder folder;
    storage::CheckpointStore store(folder.path(), 2);
    {
      SmallTraining first(options());
      first.progress.on_step = [&](Step done) { first.stop = done == pause; };
      ASSERT_EQ(first.run(&store).steps, pause);
    }
    SmallTraining second(options());
    second.plan.loader_threads = 3;
    const TrainingOutcome outcome = second.run(&store, /*resume=*/true);
    EXPECT_EQ(outcome.steps, 40);
    EXPECT_EQ(outcome.steps_now, 40 - pause);
    expect_equal_bits(state_of(second), expected);
  }
}

TEST_P(ResumedRun, MayBeInterruptedAgainAndAgain) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  Step done_so_far = 0;
  while (done_so_far < 40) {
    SmallTraining sitting(options());
    sitting.progress.on_step = [&](Step done) { sitting.stop = done == done_so_far + 9; };
    done_so_far = sitting.run(&store, done_so_far > 0).steps;
    if (done_so_far == 40) expect_equal_bits(state_of(sitting), straight());
  }
}

TEST(ResumedTrainer, KeepsCountingTimeAndTheBestEvaluation) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  TrainingOutcome first;
  {
    SmallTraining training;
    training.plan.eval_every_epochs = 1;
    training.plan.total_steps = 28;
    first = training.run(&store);
  }
  SmallTraining training;
  training.plan.eval_every_epochs = 0;
  training.plan.total_steps = 28;  // nothing is left to do
  const TrainingOutcome second = training.run(&store, /*resume=*/true);
  EXPECT_EQ(second.steps, 28);
  EXPECT_EQ(second.steps_now, 0);
  EXPECT_GE(second.best->top1, first.best->top1);
  EXPECT_EQ(second.last->top1, first.last->top1);
  EXPECT_GT(second.seconds, 0);
}

TEST(ResumedTrainer, RefusesACheckpointOfAnotherOptimizer) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  SmallTraining(SmallTrainingOptions{.replica = replica_with("sgd")}).run(&store);
  SmallTraining other(SmallTrainingOptions{.replica = replica_with("adam")});
  EXPECT_THROW(other.run(&store, /*resume=*/true), FileError);
}

}  // namespace
}  // namespace cohort::engine::test
