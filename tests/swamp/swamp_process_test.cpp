// A best-model server and its workers over real sockets, in threads of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <thread>

#include "core/error.h"
#include "core/failpoint.h"
#include "network/credentials.h"
#include "swamp/swamp_group.h"

namespace cohort::swamp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::int64_t kValues = 100'000;  // several pieces

Deadline soon() { return deadline_in(std::chrono::seconds(30)); }

SwampSpec spec_of(int workers, const std::string& policy = "validated") {
  SwampSpec spec;
  spec.workers = workers;
  spec.values = kValues;
  spec.policy = policy;
  spec.settings = R"({"lr":0.1})";
  return spec;
}

std::vector<float> model_of(float first) {
  std::vector<float> values(kValues);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i % 16);
  return values;
}

OfferVerdict verdict_of(SwampClient& client) {
  const Deadline deadline = soon();
  while (Clock::now() < deadline) {
    if (auto verdict = client.take_verdict()) return *verdict;
    std::this_thread::yield();
  }
  throw RunError("no verdict came");
}

// A door that examinations have to pass.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return open_; });
  }
  void wait_for_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return arrived_ > 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

TEST(SwampServer, KeepsTheBestAndGivesItToWhoAsks) {
  SwampGroup group;
  group.start();
  const auto meter = std::make_shared<TrafficMeter>();
  const auto metered = [&](Rank worker) {
    SwampClientOptions options = group.client(worker, spec_of(2));
    options.links.meter = meter;
    return options;
  };
  SwampClient one(metered(0));
  SwampClient other(metered(1));
  std::vector<float> mine = model_of(9);
  std::vector<float> theirs = model_of(-1);
  EXPECT_EQ(one.start(mine, soon()).version, 0U);
  EXPECT_EQ(other.start(theirs, soon()).version, 0U);
  EXPECT_EQ(theirs, model_of(9)) << "everybody begins with worker 0's";
  EXPECT_FALSE(other.pull(theirs, 0, soon())) << "nothing was accepted yet";

  EXPECT_EQ(one.offer(model_of(5), 0.5, soon()), 1U);
  OfferVerdict verdict = verdict_of(one);
  EXPECT_EQ(verdict.sequence, 1U);
  EXPECT_EQ(verdict.kind, VerdictKind::kAccepted);
  EXPECT_EQ(verdict.version, 1U);
  EXPECT_DOUBLE_EQ(verdict.loss, FirstValueExaminer::mean_of(5));

  const auto pulled = other.pull(theirs, 0, soon());
  ASSERT_TRUE(pulled);
  EXPECT_EQ(pulled->version, 1U);
  EXPECT_DOUBLE_EQ(pulled->score, FirstValueExaminer::mean_of(5));
  EXPECT_EQ(theirs, model_of(5));
  EXPECT_FALSE(other.pull(theirs, 1, soon())) << "it has that one";
  EXPECT_FALSE(one.pull(mine, 0, soon())) << "it is its own";

  other.offer(model_of(7), 0.001, soon());
  EXPECT_EQ(verdict_of(other).kind, VerdictKind::kRejected) << "its claim does not help";
  other.offer(model_of(2), 3.0, soon());
  EXPECT_EQ(verdict_of(other).version, 2U);
  std::thread waiting([&] {
    const auto best = one.final_best(mine);
    ASSERT_TRUE(best);
    EXPECT_EQ(best->version, 2U);
    EXPECT_EQ(mine, model_of(2));
    one.leave(soon());
  });
  other.leave(soon());
  waiting.join();
  const SwampReport& report = group.ended();
  EXPECT_THAT(report.reason, HasSubstr("done"));
  EXPECT_EQ(report.version, 2U);
  EXPECT_DOUBLE_EQ(report.score, FirstValueExaminer::mean_of(2));
  EXPECT_EQ(report.counters.offers, 3U);
  EXPECT_EQ(report.counters.accepted, 2U);
  EXPECT_EQ(report.counters.rejected, 1U);
  EXPECT_EQ(report.counters.pulls_with_nothing, 3U);
  EXPECT_GT(report.bytes_received, 4 * 4U * kValues);
  EXPECT_NEAR(static_cast<double>(report.bytes_received),
              static_cast<double>(meter->read().wire_sent), 1024);
  EXPECT_GT(meter->read().sent, 4 * 4U * kValues);
  EXPECT_LT(meter->read().sent, meter->read().wire_sent) << "frames have headers";
  EXPECT_THAT(group.accepted(), ElementsAre(Pair(1, 5.0F), Pair(2, 2.0F)));
}

TEST(SwampServer, NeitherOffersNorPullsWaitForAnExamination) {
  SwampGroup group;
  Gate gate;
  group.before = [&](float value) {
    if (value < 5) gate.pass();
  };
  group.start();
  SwampClient client(group.client(0, spec_of(1)));
  std::vector<float> values = model_of(9);
  client.start(values, soon());
  client.offer(model_of(6), 6, soon());
  EXPECT_EQ(verdict_of(client).kind, VerdictKind::kAccepted);
  client.offer(model_of(4), 4, soon());
  gate.wait_for_somebody();
  // Twenty more: each takes the place of the one before, and none has to wait.
  for (int i = 0; i < 20; ++i) client.offer(model_of(3), 3, soon());
  for (int i = 0; i < 19; ++i) EXPECT_EQ(verdict_of(client).kind, VerdictKind::kReplaced);
  EXPECT_FALSE(client.pull(values, 1, soon()));
  EXPECT_FALSE(client.take_verdict());
  gate.open();
  EXPECT_EQ(verdict_of(client).sequence, 2U);
  client.leave(soon());
  EXPECT_EQ(verdict_of(client).sequence, 22U) << "what waited at the end was examined";
  EXPECT_EQ(group.ended().version, 3U);
}

TEST(SwampServer, AKilledServerGoesOnFromItsLastAcceptedModel) {
  SwampGroup group(/*keeps_state=*/true);
  group.start();
  SwampClient one(group.client(0, spec_of(2)));
  std::vector<float> values = model_of(9);
  one.start(values, soon());
  one.offer(model_of(5), 5, soon());
  EXPECT_EQ(verdict_of(one).version, 1U);
  group.kill();
  // Offered while nobody is there; sent when there is.
  one.offer(model_of(4), 4, soon());
  group.start();
  const OfferVerdict verdict = verdict_of(one);
  EXPECT_EQ(verdict.kind, VerdictKind::kAccepted);
  EXPECT_EQ(verdict.version, 2U) << "versions go on where they were";
  group.kill();
  group.start();
  SwampClient other(group.client(1, spec_of(2)));
  std::vector<float> theirs = model_of(0);
  const PulledModel begins = other.start(theirs, soon());
  EXPECT_EQ(begins.version, 2U);
  EXPECT_DOUBLE_EQ(begins.score, FirstValueExaminer::mean_of(4));
  EXPECT_EQ(theirs, model_of(4));
  other.leave(soon());
  one.leave(soon());
  EXPECT_EQ(group.ended().version, 2U);
}

TEST(SwampServer, LosesNoAcceptedModelHoweverOftenItIsKilled) {
  SwampGroup group(/*keeps_state=*/true);
  group.start();
  std::atomic<bool> over = false;
  std::uint64_t told = 0;  // the newest version that anybody heard of
  std::thread worker([&] {
    SwampClient client(group.client(0, spec_of(1)));
    std::vector<float> values = model_of(1000);
    client.start(values, soon());
    for (int i = 1; i <= 60; ++i) {
      client.offer(model_of(1000 - static_cast<float>(i)), 1, soon());
      const OfferVerdict verdict = verdict_of(client);
      EXPECT_EQ(verdict.kind, VerdictKind::kAccepted);
      EXPECT_EQ(verdict.version, told + 1);
      told = verdict.version;
    }
    EXPECT_EQ(client.final_best(values)->version, 60U);
    EXPECT_EQ(values, model_of(940));
    client.leave(soon());
    over = true;
  });
  for (int i = 0; i < 12 && !over; ++i) {
    // Killed at whatever moment this is.
    std::this_thread::sleep_for(std::chrono::milliseconds(17 * (i % 5)));
    if (over) break;
    group.kill();
    group.start();
  }
  worker.join();
  EXPECT_EQ(told, 60U);
}

TEST(SwampServer, SpeaksTlsWhereThereIsAToken) {
  SwampGroup group;
  group.options.listener.address = {.host = "127.0.0.1", .port = 0, .path = {}};
  group.options.listener.credentials.token = network::make_token();
  group.start();
  SwampClientOptions stranger = group.client(0, spec_of(1));
  stranger.credentials.token = network::make_token();
  {
    SwampClient client(stranger);
    std::vector<float> values = model_of(1);
    EXPECT_THROW(client.start(values, soon()), ConfigError);
  }
  SwampClient client(group.client(0, spec_of(1, "fifo")));
  std::vector<float> values = model_of(9);
  client.start(values, soon());
  client.offer(model_of(5), 0.25, soon());
  EXPECT_EQ(verdict_of(client).kind, VerdictKind::kAccepted);
  const auto pulled = client.pull(values, 1, soon());
  ASSERT_TRUE(pulled) << "fifo gives also what one has";
  EXPECT_EQ(pulled->score, 0.25);
  EXPECT_EQ(values, model_of(5));
  client.leave(soon());
  EXPECT_THAT(group.ended().refusals, testing::Contains(testing::Key("TLS handshake failed")));
}

TEST(SwampServer, RefusesWorkersThatDisagree) {
  SwampGroup group;
  group.start();
  SwampClient one(group.client(0, spec_of(2)));
  std::vector<float> values = model_of(1);
  one.start(values, soon());
  SwampSpec another = spec_of(2);
  another.settings = R"({"lr":0.2})";
  another.hysteresis = 2;
  SwampClient other(group.client(1, another));
  try {
    other.start(values, soon());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--lr is 0.2 here and 0.1 at the others"));
    EXPECT_THAT(error.what(), HasSubstr("--swamp-hysteresis is 2.0 here"));
  }
  SwampClient beyond(group.client(2, spec_of(2)));
  EXPECT_THROW(beyond.start(values, soon()), ConfigError);
  SwampClient twice(group.client(0, spec_of(2)));
  EXPECT_THROW(twice.start(values, soon()), ConfigError) << "worker 0 is already there";
  EXPECT_THROW(SwampClient(group.client(0, spec_of(2, "newest"))), ConfigError);
}

TEST(SwampServer, AnExaminerThatThrowsRefusesThatModelAlone) {
  SwampGroup group;
  group.before = [](float value) {
    if (value == 4) throw RunError("out of memory");
  };
  group.start();
  SwampClient client(group.client(0, spec_of(1, "latest")));
  std::vector<float> values = model_of(9);
  client.start(values, soon());
  client.offer(model_of(4), 4, soon());
  const OfferVerdict verdict = verdict_of(client);
  EXPECT_EQ(verdict.kind, VerdictKind::kRefused);
  EXPECT_THAT(verdict.reason, HasSubstr("out of memory"));
  EXPECT_THAT(group.log(), HasSubstr("out of memory"));
  client.offer(model_of(5), 5, soon());
  EXPECT_EQ(verdict_of(client).kind, VerdictKind::kAccepted);
  client.leave(soon());
  EXPECT_EQ(group.ended().counters.refused, 1U);
}

TEST(SwampServer, WithoutAnExaminerEverybodyIsTold) {
  SwampGroup group;
  group.options.make_examiner = [](const SwampSpec&) -> std::unique_ptr<Examiner> {
    throw ConfigError("there is no such data set");
  };
  group.start();
  SwampClient client(group.client(0, spec_of(1)));
  std::vector<float> values = model_of(9);
  try {
    client.start(values, soon());
    client.offer(values, 1, soon());
    client.leave(soon());
    client.pull(values, 0, soon());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no such data set"));
  }
  EXPECT_THROW(group.ended(), ConfigError);
}

TEST(SwampServer, AWorkerThatIsKilledHoldsUpNobody) {
  SwampGroup group;
  group.options.evict_after = std::chrono::milliseconds(1500);
  group.start();
  SwampClient one(group.client(0, spec_of(2)));
  std::vector<float> values = model_of(9);
  one.start(values, soon());
  {
    SwampClient other(group.client(1, spec_of(2)));
    std::vector<float> theirs = model_of(9);
    other.start(theirs, soon());
    other.offer(model_of(3), 3, soon());
    EXPECT_EQ(verdict_of(other).version, 1U);
  }  // without a word
  const auto best = one.final_best(values);
  ASSERT_TRUE(best);
  EXPECT_EQ(values, model_of(3));
  one.leave(soon());
  EXPECT_EQ(group.ended().counters.evictions, 1U);
}

TEST(SwampServer, AKilledWorkerMayComeBackAndBeginsWithTheBest) {
  SwampGroup group;
  group.start();
  std::vector<float> values = model_of(9);
  {
    SwampClient first(group.client(0, spec_of(1)));
    first.start(values, soon());
    first.offer(model_of(3), 3, soon());
    verdict_of(first);
  }
  SwampClient again(group.client(0, spec_of(1)));
  EXPECT_EQ(again.start(values, soon()).version, 1U);
  EXPECT_EQ(values, model_of(3));
  again.leave(soon());
}

TEST(SwampServer, SaysWhoIsWaitedFor) {
  SwampGroup group;
  group.start();
  SwampClientOptions options = group.client(1, spec_of(2));
  options.links.meter = std::make_shared<TrafficMeter>();
  SwampClient other(options);
  std::vector<float> values = model_of(9);
  try {
    other.start(values, deadline_in(std::chrono::milliseconds(300)));
    FAIL();
  } catch (const PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("initial values of worker 0"));
  }
  // It may ask again.
  SwampClient one(group.client(0, spec_of(2)));
  std::vector<float> mine = model_of(8);
  one.start(mine, soon());
  other.start(values, soon());
  EXPECT_EQ(values, model_of(8));
  EXPECT_GT(options.links.meter->read().received, values.size() * sizeof(float));
}

TEST(SwampServer, ADiskThatIsFullNeverTellsOfWhatItCouldNotKeep) {
  SwampGroup group(/*keeps_state=*/true);
  group.start();
  SwampClient client(group.client(0, spec_of(1)));
  std::vector<float> values = model_of(9);
  client.start(values, soon());
  set_failpoints("file.open=error@1");
  client.offer(model_of(5), 5, soon());
  const OfferVerdict verdict = verdict_of(client);
  set_failpoints("");
  EXPECT_EQ(verdict.kind, VerdictKind::kAccepted) << "the second time it could be written";
  EXPECT_THAT(group.log(), HasSubstr("could not be written"));
  client.leave(soon());
  EXPECT_EQ(group.ended().counters.persist_failures, 1U);
}

TEST(SwampServer, AFolderBelongsToOneServer) {
  SwampGroup group(/*keeps_state=*/true);
  group.start();
  SwampServerOptions second = group.options;
  second.listener.address.path += "2";
  EXPECT_THROW(SwampServer{second}, ConfigError);
}

}  // namespace
}  // namespace cohort::swamp
