// Servers and workers over real sockets, in threads of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <numeric>
#include <thread>

#include "core/error.h"
#include "serving/server_group.h"

namespace cohort::serving {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kElements = 100'000;

Deadline soon() { return deadline_in(std::chrono::seconds(30)); }

struct Job {
  int workers = 1;
  server::ServerMode mode = server::ServerMode::kSync;
  server::Sharding sharding = server::Sharding::kSliced;
  double lr = 0.5;
  server::WireFormat wire = server::WireFormat::kFloat32;
  std::int64_t updates = 0;
};

ParameterClientOptions options_for(const ServerGroup& servers, const Job& job, Rank worker) {
  ParameterClientOptions options;
  options.servers = servers.addresses();
  options.job = servers.job;
  options.worker = worker;
  const std::vector<server::ShardTensor> model = {
      {"b", {10}, {0, 10}, 0}, {"w", {999, 100}, {10, 99'900}, 0}, {"a", {90}, {99'910, 90}, 0}};
  const auto count = static_cast<int>(options.servers.size());
  options.layout = server::shard(model, count, job.sharding);
  for (int server = 0; server < count; ++server) {
    server::JobSpec spec;
    spec.workers = job.workers;
    spec.servers = count;
    spec.server = server;
    spec.size = options.layout.sizes[static_cast<std::size_t>(server)];
    spec.mode = job.mode;
    spec.wire = job.wire;
    spec.total_updates = job.updates;
    spec.optimizer_options.momentum = 0;
    if (spec.size > 0) spec.decay = {{{0, spec.size}, 0}};
    spec.schedule_options.lr = job.lr;
    spec.settings = R"({"lr":)" + std::to_string(job.lr) + "}";
    options.specs.push_back(spec);
  }
  return options;
}

// One worker's life: starts at `start`, takes `steps` steps along a gradient of its own.
std::vector<float> work(const ParameterClientOptions& options, int steps, float start,
                        const std::function<void(int)>& between = {}) {
  std::vector<float> parameters(kElements, start);
  std::vector<float> gradients(kElements);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = static_cast<float>((i % 8) + static_cast<std::size_t>(options.worker));
  }
  ParameterClient client(options, {parameters, gradients, {}});
  client.start({}, soon());
  for (int step = 0; step < steps; ++step) {
    client.begin_push();
    client.extend_push(kElements / 2);
    client.finish_push();
    client.wait(soon());
    if (between) between(step);
  }
  if (options.worker == 0) client.wait_for_others();
  client.leave(membership::LeaveKind::kDone, soon());
  return parameters;
}

// Of one long tensor, more than any socket takes at once.
ParameterClientOptions long_options_for(const ServerGroup& servers, std::int64_t size,
                                        Rank worker) {
  ParameterClientOptions options =
      options_for(servers, {.workers = 2, .mode = server::ServerMode::kAsync}, worker);
  const auto count = static_cast<int>(options.servers.size());
  const std::vector<server::ShardTensor> model = {{"w", {size}, {0, size}, 0}};
  options.layout = server::shard(model, count, server::Sharding::kSliced);
  for (server::JobSpec& spec : options.specs) {
    spec.size = options.layout.sizes[static_cast<std::size_t>(spec.server)];
    spec.decay = {{{0, spec.size}, 0}};
  }
  return options;
}

class Layouts : public testing::TestWithParam<std::tuple<int, server::Sharding>> {};

INSTANTIATE_TEST_SUITE_P(All, Layouts,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(server::Sharding::kWhole,
                                                          server::Sharding::kSliced,
                                                          server::Sharding::kHash)));

TEST_P(Layouts, ARoundMovesEverybodyByTheMean) {
  const auto [count, sharding] = GetParam();
  ServerGroup servers(count);
  const Job job{.workers = 3, .sharding = sharding, .updates = 4};
  std::vector<std::vector<float>> found(3);
  std::vector<std::thread> threads;
  for (Rank worker = 0; worker < 3; ++worker) {
    threads.emplace_back([&, worker] {
      found[static_cast<std::size_t>(worker)] =
          work(options_for(servers, job, worker), 4, 100.0F + static_cast<float>(worker));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kElements; ++i) {
    // From worker 0's start; the mean over workers of (i % 8) + worker is (i % 8) + 1.
    ASSERT_EQ(found[0][i], 100.0F - 4 * 0.5F * (static_cast<float>(i % 8) + 1)) << i;
  }
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
  for (int server = 0; server < count; ++server) {
    EXPECT_THAT(servers.ended(server).reason, HasSubstr("done"));
  }
}

TEST(Serving, EveryGradientCountsOnceWithoutRounds) {
  ServerGroup servers(2);
  const Job job{.workers = 2, .mode = server::ServerMode::kAsync};
  std::vector<float> last;
  std::thread other([&] { work(options_for(servers, job, 1), 30, 0); });
  last = work(options_for(servers, job, 0), 20, 0);
  other.join();
  for (std::size_t i = 0; i < kElements; i += 97) {
    const auto own = static_cast<float>(i % 8);
    ASSERT_EQ(last[i], -0.5F * (20 * own + 30 * (own + 1))) << i;
  }
  EXPECT_EQ(servers.ended(0).counters.pushes, 50U);
}

TEST(Serving, LongValuesReachEverybodyWhole) {
  constexpr std::int64_t kLong = 6'000'000;
  ServerGroup servers(2);
  std::vector<float> first(kLong);
  std::iota(first.begin(), first.end(), 0.0F);
  std::vector<float> second(kLong);
  const std::vector<float> gradients(kLong, 2.0F);
  ParameterClient one(long_options_for(servers, kLong, 0), {first, gradients, {}});
  one.start({}, soon());
  ParameterClient other(long_options_for(servers, kLong, 1), {second, gradients, {}});
  other.start({}, soon());
  EXPECT_EQ(second, first);
  other.begin_push();
  other.finish_push();
  other.wait(soon());
  for (std::size_t i = 0; i < kLong; ++i) ASSERT_EQ(second[i], first[i] - 1) << i;
  // Both wait for the other to be done, and so both are.
  std::thread waiting([&] { one.wait_for_others(); });
  other.wait_for_others();
  waiting.join();
  EXPECT_EQ(first, second);
  one.leave(membership::LeaveKind::kDone, soon());
  other.leave(membership::LeaveKind::kDone, soon());
}

TEST(Serving, AWorkerThatHasEndedHoldsUpNobodyWhoCameLater) {
  ServerGroup servers(1);
  const Job job{.workers = 2, .mode = server::ServerMode::kBounded};
  std::thread late;
  const auto start_the_other = [&](int step) {
    if (step != 8) return;
    late = std::thread([&] { work(options_for(servers, job, 1), 10, 0); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  // The late one's clock begins where the other's is, and runs past the other's last.
  work(options_for(servers, job, 0), 10, 0, start_the_other);
  late.join();
  EXPECT_EQ(servers.ended(0).counters.pushes, 20U);
}

TEST(Serving, HalfPrecisionHalvesWhatIsSent) {
  std::uint64_t sent[2];
  for (const bool half : {false, true}) {
    ServerGroup servers(1);
    const Job job{.mode = server::ServerMode::kAsync,
                  .wire = half ? server::WireFormat::kFloat16 : server::WireFormat::kFloat32};
    const auto values = work(options_for(servers, job, 0), 4, 0);
    EXPECT_EQ(values[3], -0.5F * 4 * 3);
    sent[half ? 1 : 0] = servers.ended(0).bytes_received;
  }
  EXPECT_LT(static_cast<double>(sent[1]),
            0.62 * static_cast<double>(sent[0]));  // initial values too
}

TEST(Serving, AServerThatIsKilledAndStartedAgainGoesOn) {
  ServerGroup servers(2, /*keeps_state=*/true);
  const Job job{.workers = 2, .mode = server::ServerMode::kAsync};
  const auto interfere = [&](int step) {
    if (step % 20 != 10) return;
    servers.stop(0);
    servers.start(0);
  };
  std::thread other([&] { work(options_for(servers, job, 1), 60, 0); });
  const std::vector<float> last = work(options_for(servers, job, 0), 60, 0, interfere);
  other.join();
  for (std::size_t i = 0; i < kElements; i += 97) {
    const auto own = static_cast<float>(i % 8);
    ASSERT_EQ(last[i], -0.5F * (60 * own + 60 * (own + 1))) << i;
  }
  EXPECT_EQ(servers.ended(0).counters.pushes, 120U);
  EXPECT_EQ(servers.ended(1).counters.pushes, 120U);
}

// What a server says by itself, as of every snapshot, comes at any moment of a step.
TEST(Serving, WhatComesBetweenStepsIsNotTakenForAnAnswer) {
  ServerGroup servers(2, /*keeps_state=*/true, std::chrono::milliseconds(1));
  const Job job{.mode = server::ServerMode::kAsync};
  const std::vector<float> last = work(options_for(servers, job, 0), 1000, 0);
  for (std::size_t i = 0; i < kElements; i += 97) {
    ASSERT_EQ(last[i], -0.5F * 1000 * static_cast<float>(i % 8)) << i;
  }
}

// Two workers of a synchronous job, whose gradients are all 1; the first one's user can stop it.
struct Pair {
  Pair() {
    options.stop = &stop;
    client = std::make_unique<ParameterClient>(options, ClientArenas{parameters, gradients, {}});
    other = std::make_unique<ParameterClient>(options_for(servers, job, 1),
                                              ClientArenas{others, gradients, {}});
    auto joined = std::async(std::launch::async, [&] { other->start({}, soon()); });
    client->start({}, soon());
    joined.get();
  }
  // It has pushed, and waits no longer.
  void interrupt() {
    client->begin_push();
    client->finish_push();
    stop = true;
    EXPECT_THROW(client->wait(soon()), InterruptedError);
  }

  ServerGroup servers{2};
  const Job job{.workers = 2, .sharding = server::Sharding::kWhole};
  std::atomic<bool> stop = false;
  ParameterClientOptions options = options_for(servers, job, 0);
  std::vector<float> parameters = std::vector<float>(kElements, 3);
  std::vector<float> others = parameters;
  const std::vector<float> gradients = std::vector<float>(kElements, 1);
  std::unique_ptr<ParameterClient> client, other;
};

TEST(Serving, WhoeverIsInterruptedInARoundTakesItsGradientBack) {
  Pair pair;
  pair.interrupt();
  EXPECT_FALSE(pair.client->take_back(soon()));
  EXPECT_EQ(pair.parameters, std::vector<float>(kElements, 3));
  pair.client->leave(membership::LeaveKind::kInterrupted, soon());
  pair.other->begin_push();
  pair.other->finish_push();
  EXPECT_EQ(pair.other->wait(soon()).version, 1U);
  EXPECT_EQ(pair.others, std::vector<float>(kElements, 2.5F)) << "of its own gradient alone";
  pair.other->leave(membership::LeaveKind::kDone, soon());
}

TEST(Serving, ARoundThatOneServerHasMadeIsMadeByAll) {
  Pair pair;
  pair.other->begin_push();
  pair.other->extend_push(99'910);  // all that one of the servers is for
  pair.interrupt();
  auto rest = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    pair.other->finish_push();
    pair.other->wait(soon());
  });
  EXPECT_TRUE(pair.client->take_back(soon()));
  rest.get();
  pair.client->refresh(/*with_slots=*/false, soon());
  for (const server::ModelProgress& each : pair.client->progress()) EXPECT_EQ(each.version, 1U);
  EXPECT_EQ(pair.parameters, std::vector<float>(kElements, 2.5F));
  EXPECT_EQ(pair.others, pair.parameters);
  pair.client->leave(membership::LeaveKind::kInterrupted, soon());
  pair.other->leave(membership::LeaveKind::kDone, soon());
}

TEST(Serving, AClientMayEndWhileAServerGoes) {
  auto servers = std::make_unique<ServerGroup>(1);
  ParameterClientOptions options = options_for(*servers, {.mode = server::ServerMode::kAsync}, 0);
  std::promise<void> noted;
  std::atomic<bool> first = true;
  options.note = [&](const std::string&) {
    if (!first.exchange(false)) return;
    noted.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  };
  std::vector<float> parameters(kElements);
  const std::vector<float> gradients(kElements);
  auto client = std::make_unique<ParameterClient>(options, ClientArenas{parameters, gradients, {}});
  client->start({}, soon());
  servers.reset();
  noted.get_future().wait();
  client.reset();
}

TEST(Serving, AServerThatIsStartedAgainWithoutItsStateIsRefused) {
  ServerGroup servers(1);
  const Job job{.mode = server::ServerMode::kAsync};
  const auto lose = [&](int step) {
    if (step != 2) return;
    servers.stop(0);
    servers.start(0);
  };
  try {
    work(options_for(servers, job, 0), 5, 0, lose);
    FAIL() << "trained on";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--state-dir"));
  }
}

// Server 1 has lost its state, server 0 serves worker 1.
void begin_on_one_of_two(ServerGroup& servers, ParameterClient& other, const Job& job) {
  std::vector<float> parameters(kElements), gradients(kElements, 1);
  ParameterClient first(options_for(servers, job, 0), {parameters, gradients, {}});
  first.start({}, soon());
  other.start({}, soon());
  for (int step = 0; step < 5; ++step) {
    first.begin_push();
    first.finish_push();
    first.wait(soon());
  }
  servers.stop(1);
  servers.start(1);
}

TEST(Serving, WhereSomeServersGoBackToTheCheckpointAllDo) {
  ServerGroup servers(2);
  const Job job{.workers = 2, .mode = server::ServerMode::kAsync};
  std::vector<float> values(kElements);
  ParameterClient other(options_for(servers, job, 1), {values, values, {}});
  begin_on_one_of_two(servers, other, job);
  ParameterClientOptions options = options_for(servers, job, 0);
  options.join = membership::JoinKind::kCheckpoint;
  std::string said;
  options.note = [&](const std::string& text) { said += text; };
  std::vector<float> sevens(kElements, 7);
  ParameterClient resumed(options, {sevens, values, {}});
  EXPECT_EQ(resumed.start({.version = 3, .skipped = 0, .pushes = {3, 0}}, soon()), 3U);
  for (const server::ModelProgress& each : resumed.progress()) {
    EXPECT_EQ(each.version, 3U);
    EXPECT_EQ(each.pushes, (std::vector<std::uint64_t>{3, 0}));
  }
  EXPECT_EQ(sevens, std::vector<float>(kElements, 7)) << "of one moment";
  EXPECT_THAT(said, HasSubstr("all go back to the checkpoint"));
  resumed.leave(membership::LeaveKind::kDone, soon());
}

TEST(Serving, AWorkerWithoutACheckpointDoesNotMixTwoModels) {
  ServerGroup servers(2);
  const Job job{.workers = 2, .mode = server::ServerMode::kAsync};
  std::vector<float> values(kElements);
  ParameterClient other(options_for(servers, job, 1), {values, values, {}});
  begin_on_one_of_two(servers, other, job);
  std::vector<float> own(kElements);
  ParameterClient again(options_for(servers, job, 0), {own, values, {}});
  try {
    again.start({}, soon());
    FAIL() << "took part of a model";
  } catch (const PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--resume"));
  }
}

TEST(Serving, WorkersWithOtherSettingsAreTurnedAway) {
  ServerGroup servers(1);
  std::vector<float> values(kElements);
  const Job job{.workers = 2, .mode = server::ServerMode::kAsync};
  ParameterClient first(options_for(servers, job, 0), {values, values, {}});
  first.start({}, soon());
  Job other = job;
  other.lr = 0.25;
  std::vector<float> own(kElements);
  ParameterClient second(options_for(servers, other, 1), {own, own, {}});
  try {
    second.start({}, soon());
    FAIL() << "was let in";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("worker 1"));
    EXPECT_THAT(error.what(), HasSubstr("lr"));
  }
  first.leave(membership::LeaveKind::kDone, soon());
}

TEST(Serving, AMissingServerIsNamed) {
  ServerGroup servers(2);
  servers.stop(1);
  std::vector<float> values(kElements);
  ParameterClient client(options_for(servers, {}, 0), {values, values, {}});
  try {
    client.start({}, deadline_in(std::chrono::milliseconds(300)));
    FAIL() << "found it";
  } catch (const PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("server 1"));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("server 0")));
  }
}

TEST(Serving, AStateFolderHasOneServer) {
  ServerGroup servers(1, /*keeps_state=*/true);
  ServerProcessOptions options;
  options.listener.address = servers.addresses().front();
  options.state_dir = std::filesystem::path(options.listener.address.path).parent_path() / "state0";
  options.listener.address.path += "-second";
  options.listener.self = {servers.job, network::Role::kServer, 0};
  EXPECT_THROW(ServerProcess{options}, ConfigError);
}

}  // namespace
}  // namespace cohort::serving
