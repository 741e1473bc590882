#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "dialects/mnist.h"
#include "dialects/native_command.h"

namespace cohort::dialects {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The published commands.
MnistFlags published_mnist_flags(const std::string& job) {
  MnistFlags flags;
  flags.ps_hosts = "10.10.10.94:2222";
  flags.worker_hosts = "10.10.10.191:2222";
  flags.job_name = job;
  flags.task_index = 0;
  return flags;
}

std::string mnist_refusal(const MnistFlags& flags, const std::string& tf_config = "") {
  try {
    translate(flags, tf_config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(MnistCommand, ThePublishedServerListensWhereItsTaskIsNamed) {
  const MnistTranslation server = translate(published_mnist_flags("ps"), "");
  EXPECT_EQ(server.role, MnistRole::kServer);
  EXPECT_EQ(server.index, 0);
  EXPECT_THAT(server.servers, ElementsAre("10.10.10.94:2222"));
  EXPECT_EQ(server.workers, 1);
  EXPECT_THAT(server.notes, IsEmpty());
}

TEST(MnistCommand, ThePublishedWorkerTrainsWithTheExamplesConstants) {
  const MnistTranslation worker = translate(published_mnist_flags("worker"), "");
  EXPECT_EQ(worker.role, MnistRole::kWorker);
  EXPECT_EQ(shell_line(native_command(worker.config)),
            "cohort train --model mlp-100 --data mnist --method parameter-server --workers 1 "
            "--servers 10.10.10.94:2222 --server-mode async --sharding whole --rank 0 "
            "--data-dir MNIST_data --batch 100 --train-skip 5000 --augment none --normalize none "
            "--drop-last --partition all --lr 5e-04 --momentum 0 --epochs 20 --eval-every 0 "
            "--record-every 100 --checkpoint-every 1000000000000");
}

TEST(MnistCommand, SynchronousReplicasAndSecretsAreAskedFor) {
  MnistFlags flags = published_mnist_flags("worker");
  flags.ps_hosts = "a:1,b:2";
  flags.worker_hosts = "c:3,d:4,e:5";
  flags.task_index = 2;
  flags.sync = true;
  flags.token_file = "job.token";
  flags.seed = 7;
  const config::RunConfig config = translate(flags, "").config;
  EXPECT_EQ(config.server_mode, "sync");
  EXPECT_EQ(config.servers, "a:1,b:2");
  EXPECT_EQ(config.workers, 3);
  EXPECT_EQ(config.rank, 2);
  EXPECT_EQ(config.token_file, "job.token");
  EXPECT_EQ(config.seed, 7);
}

TEST(MnistCommand, LocalTrainingIsTheSameButForTheServers) {
  MnistFlags flags;
  flags.local = true;
  const MnistTranslation local = translate(flags, R"({"cluster": "whatever"})");
  EXPECT_EQ(local.role, MnistRole::kAlone);
  config::RunConfig alone = translate(published_mnist_flags("worker"), "").config;
  const config::RunConfig defaults;
  alone.method = defaults.method;
  alone.servers = defaults.servers;
  alone.server_mode = defaults.server_mode;
  alone.sharding = defaults.sharding;
  alone.partition = defaults.partition;
  alone.workers = defaults.workers;
  alone.rank = defaults.rank;
  EXPECT_EQ(local.config, alone);
  flags.job_name = "worker";
  EXPECT_THAT(mnist_refusal(flags), HasSubstr("--local trains without servers"));
}

TEST(MnistCommand, ReadsTfConfigWhenNoFlagSaysWhoItIs) {
  const std::string cluster = R"("cluster": {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]})";
  const MnistTranslation server =
      translate({}, "{" + cluster + R"(, "task": {"type": "ps", "index": 1}})");
  EXPECT_EQ(server.role, MnistRole::kServer);
  EXPECT_EQ(server.index, 1);
  EXPECT_THAT(server.servers, ElementsAre("a:1", "b:1"));
  const MnistTranslation worker =
      translate({}, "{" + cluster + R"(, "task": {"type": "worker", "index": 1}})");
  EXPECT_EQ(worker.role, MnistRole::kWorker);
  EXPECT_EQ(worker.config.rank, 1);
  EXPECT_EQ(worker.config.workers, 2);
  const MnistTranslation flags = translate(published_mnist_flags("ps"), "{" + cluster + "}");
  EXPECT_THAT(flags.servers, ElementsAre("10.10.10.94:2222"));
  EXPECT_THAT(flags.notes, Contains(HasSubstr("the flags count")));
}

TEST(MnistCommand, AChiefIsTheFirstWorker) {
  const std::string cluster =
      R"({"cluster": {"chief": ["c:1"], "ps": ["a:1"], "worker": ["d:1", "e:1"]}, "task": )";
  const auto rank_of = [&](const std::string& task) {
    const MnistTranslation worker = translate({}, cluster + task + "}");
    EXPECT_EQ(worker.workers, 3);
    return worker.config.rank;
  };
  EXPECT_EQ(rank_of(R"({"type": "chief", "index": 0})"), 0);
  EXPECT_EQ(rank_of(R"({"type": "worker", "index": 0})"), 1);
  EXPECT_EQ(rank_of(R"({"type": "worker", "index": 1})"), 2);
}

TEST(MnistCommand, RefusesWhatMakesNoSense) {
  EXPECT_THAT(mnist_refusal({}), HasSubstr("--job_name says what this process is"));
  MnistFlags flags = published_mnist_flags("wroker");
  EXPECT_THAT(mnist_refusal(flags), HasSubstr("did you mean 'worker'?"));
  flags = published_mnist_flags("worker");
  flags.task_index = 1;
  EXPECT_EQ(mnist_refusal(flags), "task 1 of job 'worker': there is 1, counted from 0");
  flags.task_index = -1;
  EXPECT_THAT(mnist_refusal(flags), HasSubstr("task -1 of job 'worker'"));
  flags = published_mnist_flags("ps");
  flags.worker_hosts.clear();
  EXPECT_THAT(mnist_refusal(flags), HasSubstr("--worker_hosts is needed"));
  flags = published_mnist_flags("ps");
  flags.ps_hosts = "10.10.10.94";
  EXPECT_THAT(mnist_refusal(flags), HasSubstr("--ps_hosts takes addresses"));
  flags.ps_hosts = "a:1,a:1";
  EXPECT_THAT(mnist_refusal(flags), HasSubstr("--ps_hosts has a:1 twice"));
  flags = published_mnist_flags("worker");
  flags.batch_size = 0;
  EXPECT_THAT(mnist_refusal(flags), HasSubstr("--batch_size must be from 1"));
}

TEST(MnistCommand, RefusesATfConfigThatIsNone) {
  for (const char* text : {"{", "[]", "{}", R"({"cluster": {}, "task": 3})",
                           R"({"cluster": {"ps": [1]}, "task": {"type": "ps"}})"}) {
    EXPECT_THAT(mnist_refusal({}, text), HasSubstr("TF_CONFIG")) << text;
  }
  const std::string cluster = R"({"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": )";
  EXPECT_THAT(mnist_refusal({}, cluster + R"({"type": "evaluator", "index": 0}})"),
              HasSubstr("each worker evaluates by itself"));
  EXPECT_THAT(mnist_refusal({}, cluster + R"({"type": "worker", "index": 1}})"),
              HasSubstr("task 1 of job 'worker'"));
  EXPECT_THAT(mnist_refusal({}, R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps"}})"),
              HasSubstr("needs a ps and a worker"));
  EXPECT_THAT(mnist_refusal({}, R"({"cluster": {"ps": ["a"], "worker": ["b:1"]}, )"
                                R"("task": {"type": "ps"}})"),
              HasSubstr("TF_CONFIG's cluster.ps takes addresses"));
}

}  // namespace
}  // namespace cohort::dialects
