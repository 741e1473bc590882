// Language models through the whole engine.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/error.h"
#include "data/text.h"
#include "engine/checkpointing.h"
#include "engine/evaluator.h"
#include "engine/worker_runs.h"

namespace cohort::engine::test {
namespace {

// A folder with a text that is not random: words follow each other by a rule with exceptions.
class TextTraining : public testing::Test {
 protected:
  TextTraining() {
    write("train.txt", 1200, 1);
    write("valid.txt", 90, 2);
    write("test.txt", 203, 3);
  }

  void write(const std::string& name, int words, int seed) const {
    std::ofstream file(folder_.path() / name);
    int word = seed;
    for (int i = 1; i <= words; ++i) {
      word = (word * 5 + (i % 7 == 0 ? i : 1)) % 19;
      file << 'w' << word << (i % 11 == 0 ? "\n" : " ");
    }
  }

  config::RunConfig config(int workers, std::int64_t batch,
                           const std::string& method = "all-reduce") const {
    config::RunConfig config = small_run(workers, batch * workers, method);
    config.batch = batch;
    config.model = "lstm";
    config.data = "text";
    config.data_dir = folder_.path().string();
    config.train_size = config.test_size = 0;
    config.bptt = 7;
    config.rnn_hidden = 8;
    config.rnn_layers = 2;
    config.dropout = 0;
    config.lr = 0.5;
    config.momentum = 0.5;
    config.clip_norm = 0.25;
    return config;
  }

  void expect_exact_resume(config::RunConfig config, Step first, bool mid_epoch) const {
    const RunResult straight = run_group(config);
    const storage::test::TemporaryFolder store_folder;
    storage::CheckpointStore store(store_folder.path(), 2);
    const Step all = config.iterations;
    config.iterations = first;
    run_group(config, {.store = &store});
    const auto saved = store.load_latest([](const std::string&) {});
    const at::Tensor carried = carried_of(*saved);
    EXPECT_EQ(carried.defined(), mid_epoch);
    if (mid_epoch) {
      EXPECT_EQ(carried.size(2), batch_of_all(config, static_cast<int>(config.workers)));
    }
    config.iterations = all;
    const RunResult resumed = run_group(config, {.store = &store, .resume = true});
    for (std::size_t rank = 0; rank < straight.parameters.size(); ++rank) {
      EXPECT_TRUE(resumed.parameters[rank].equal(straight.parameters[rank])) << rank;
      EXPECT_TRUE(resumed.momentum[rank].equal(straight.momentum[rank])) << rank;
    }
  }

  storage::test::TemporaryFolder folder_;
};

TEST_F(TextTraining, LearnsTheText) {
  config::RunConfig one = config(1, 6, "local");
  one.iterations = 0;
  one.epochs = 10;
  one.rnn_hidden = 24;
  one.lr = 3;
  one.clip_norm = 1;
  one.eval_every = 10;
  const RunResult result = run_group(one);
  ASSERT_EQ(result.evaluations.size(), 1u);
  const auto words = static_cast<double>(open_data(one, {})->train->class_names().size());
  EXPECT_LT(result.evaluations.back().loss, 0.6 * std::log(words));
  EXPECT_EQ(result.evaluations.back().samples, 203 + 19 - 1);  // with the ends of 19 lines
  EXPECT_TRUE(result.outcomes[0].text);
}

TEST_F(TextTraining, OfTwoWorkersIsThatOfOneWithTheirColumns) {
  config::RunConfig one = config(1, 6, "local");
  config::RunConfig two = config(2, 3);
  one.iterations = two.iterations = 40;  // beyond the first epoch
  const RunResult alone = run_group(one);
  const RunResult together = run_group(two);
  EXPECT_LT(distance(alone.parameters[0], together.parameters[0]), 2e-4);
  expect_equal_replicas(together);
  // And they do train.
  one.iterations = 39;
  EXPECT_GT(distance(alone.parameters[0], run_group(one).parameters[0]), 1e-3);
}

TEST_F(TextTraining, GoesOnExactlyInTheMiddleOfAnEpoch) {
  for (const std::string method : {"local", "all-reduce", "choco"}) {
    SCOPED_TRACE(method);
    config::RunConfig run = config(method == "local" ? 1 : 2, 4, method);
    if (method == "choco") {
      run.compressor = "sign";
      run.consensus_stepsize = "0.3";
    }
    run.dropout = 0.2;
    run.iterations = 24;
    expect_exact_resume(run, 11, true);
  }
}

TEST_F(TextTraining, GoesOnExactlyAtTheEndOfAnEpoch) {
  config::RunConfig run = config(2, 4);
  const auto data = open_data(run, {});
  const Step epoch = sample_order(run, *data->train, {0, 2, 0}).steps_per_epoch();
  run.iterations = epoch + 5;
  expect_exact_resume(run, epoch, false);
}

TEST_F(TextTraining, GoesOnWithOtherWorkersWhoTakeOverTheColumns) {
  config::RunConfig run = config(2, 6);
  run.iterations = 20;
  const RunResult straight = run_group(run);
  const storage::test::TemporaryFolder store_folder;
  storage::CheckpointStore store(store_folder.path(), 2);
  run.iterations = 9;
  run_group(run, {.store = &store});
  config::RunConfig other = config(3, 4);
  other.iterations = 20;
  const RunResult resumed = run_group(other, {.store = &store, .resume = true});
  EXPECT_LT(distance(resumed.parameters[0], straight.parameters[0]), 1e-5);
}

TEST_F(TextTraining, EvaluatesEveryWordOnceWhoeverDoesIt) {
  std::vector<metrics::EvaluationRecord> records;
  for (const int workers : {1, 2, 3}) {
    // No step has any effect, so all evaluate the same model.
    config::RunConfig run = config(workers, 6 / workers, workers == 1 ? "local" : "all-reduce");
    run.iterations = 2;
    run.lr = 0;
    run.eval_batch = 5;
    const RunResult result = run_group(run);
    ASSERT_EQ(result.evaluations.size(), 1u);
    records.push_back(result.evaluations[0]);
  }
  for (const metrics::EvaluationRecord& record : records) {
    EXPECT_EQ(record.samples, 203 + 19 - 1);
    EXPECT_NEAR(record.loss, records[0].loss, 1e-6);
    EXPECT_EQ(record.top1, records[0].top1);
  }
}

TEST_F(TextTraining, IsNotDisturbedByAnEvaluation) {
  config::RunConfig run = config(1, 6, "local");
  run.iterations = 0;
  run.epochs = 2;
  const RunResult without = run_group(run);
  run.eval_every = 1;
  EXPECT_TRUE(run_group(run).parameters[0].equal(without.parameters[0]));

  // In the middle of an epoch, too.
  const auto data = open_data(run, {});
  const auto model = build_model(run, *data->train);
  const at::Tensor state = at::ones({2, 2, 6, 8});
  model->set_carried(state);
  const Evaluation result = evaluate(*model, *data->test, evaluator_options(run, *model, at::kCPU));
  EXPECT_TRUE(model->carried().equal(state));
  model->set_carried({});
  EXPECT_EQ(evaluate(*model, *data->test, evaluator_options(run, *model, at::kCPU)).loss,
            result.loss);
}

TEST_F(TextTraining, EvaluatesOnTheValidationTextWhenAsked) {
  config::RunConfig run = config(1, 6, "local");
  run.iterations = 1;
  run.eval_split = "validation";
  const RunResult result = run_group(run);
  ASSERT_EQ(result.evaluations.size(), 1u);
  EXPECT_EQ(result.evaluations[0].split, "validation");
  EXPECT_EQ(result.evaluations[0].samples, 90 + 9 - 1);
}

TEST_F(TextTraining, RefusesWhatATextHasNot) {
  const auto expect_refused = [&](const std::function<void(config::RunConfig&)>& change) {
    config::RunConfig bad = config(2, 4);
    change(bad);
    EXPECT_THROW(build_model(bad, *open_data(bad, {})->train), ConfigError);
  };
  expect_refused([](config::RunConfig& bad) { bad.model = "mlp-100"; });
  expect_refused([](config::RunConfig& bad) { bad.data = "synthetic"; });
  expect_refused([](config::RunConfig& bad) { bad.partition = "random"; });
  expect_refused([](config::RunConfig& bad) { bad.accumulate = 2; });
  expect_refused([](config::RunConfig& bad) { bad.method = "swamp"; });
  expect_refused([](config::RunConfig& bad) { bad.target_accuracy = 0.5; });
  expect_refused([](config::RunConfig& bad) { bad.batch = 5000; });
}

}  // namespace
}  // namespace cohort::engine::test
