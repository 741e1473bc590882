// One contract over every registered transport, plain and inside each decorator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "core/patience.h"
#include "transport/faulty.h"
#include "transport/metered.h"
#include "transport/rank_threads.h"
#include "transport/registry.h"
#include "transport/transport.h"

namespace cohort::transport {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Bytes bytes(const std::string& text) {
  Bytes result(text.size());
  std::memcpy(result.data(), text.data(), text.size());
  return result;
}

std::string text(const Message& message) {
  return {reinterpret_cast<const char*>(message.payload.data()), message.payload.size()};
}

Bytes number(int value) { return bytes(std::to_string(value)); }

enum class Wrapping { kPlain, kMetered, kFaultless };

class TransportConformance
    : public testing::TestWithParam<std::tuple<TransportRegistry::Entry, Wrapping>> {
 protected:
  using Group = std::vector<std::unique_ptr<Transport>>;

  static Group make(int size) {
    Group members = std::move(std::get<0>(GetParam()).make(size)->members);
    for (auto& member : members) {
      switch (std::get<1>(GetParam())) {
        case Wrapping::kPlain:
          break;
        case Wrapping::kMetered:
          member = std::make_unique<MeteredTransport>(std::move(member));
          break;
        case Wrapping::kFaultless:
          member = std::make_unique<FaultyTransport>(std::move(member), FaultPlan{});
          break;
      }
    }
    return members;
  }
};

TEST_P(TransportConformance, KnowsItsRankAndItsSize) {
  for (const int size : {1, 2, 5}) {
    const Group group = make(size);
    ASSERT_EQ(group.size(), static_cast<std::size_t>(size));
    for (Rank rank = 0; rank < size; ++rank) {
      EXPECT_EQ(group[rank]->rank(), rank);
      EXPECT_EQ(group[rank]->size(), size);
    }
  }
}

TEST_P(TransportConformance, KeepsTheOrderOfEverySenderReceiverAndTag) {
  constexpr int kSize = 3;
  constexpr int kMessages = 100;
  Group group = make(kSize);
  const auto errors = run_ranks(kSize, [&](Rank rank) {
    for (int i = 0; i < kMessages; ++i) {
      for (Rank to = 0; to < kSize; ++to) {
        for (Tag tag = 0; tag < 2; ++tag) group[rank]->send(to, tag, number(i), far());
      }
    }
    for (Rank from = 0; from < kSize; ++from) {
      for (Tag tag = 2; tag-- > 0;) {
        for (int i = 0; i < kMessages; ++i) {
          const Message message = group[rank]->receive(from, tag, far());
          EXPECT_EQ(text(message), std::to_string(i));
          EXPECT_EQ(message.from, from);
          EXPECT_EQ(message.tag, tag);
        }
      }
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(kSize));
}

TEST_P(TransportConformance, DoesNotMixTags) {
  Group group = make(2);
  group[0]->send(1, 7, bytes("seven"), far());
  group[0]->send(1, 0xffff'ffff, bytes("last"), far());
  EXPECT_EQ(text(group[1]->receive(0, 0xffff'ffff, far())), "last");
  EXPECT_FALSE(group[1]->try_receive(8).has_value());
  EXPECT_EQ(text(group[1]->receive(0, 7, far())), "seven");
}

TEST_P(TransportConformance, CarriesEmptyAndLargeMessagesUnchanged) {
  Group group = make(2);
  Bytes large(8 << 20);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 2654435761U);
  run_ranks(2, [&](Rank rank) {
    // Both send before either receives: a send that waited for the receiver would hang here.
    group[rank]->send(1 - rank, 1, {}, far());
    Bytes scratch = large;
    group[rank]->send(1 - rank, 1, scratch, far());
    std::fill(scratch.begin(), scratch.end(), std::byte{0});  // reusable at once
    EXPECT_TRUE(group[rank]->receive(1 - rank, 1, far()).payload.empty());
    EXPECT_TRUE(group[rank]->receive(1 - rank, 1, far()).payload == large);
  });
}

TEST_P(TransportConformance, SendsToItself) {
  Group group = make(2);
  group[1]->send(1, 3, bytes("note"), far());
  EXPECT_EQ(text(group[1]->receive(1, 3, far())), "note");
}

TEST_P(TransportConformance, ReceivesFromAnyRankInTheOrderOfArrival) {
  Group group = make(3);
  EXPECT_FALSE(group[0]->try_receive(5).has_value());
  group[2]->send(0, 5, bytes("first"), far());
  const auto first = group[0]->receive_any(5, far());
  group[1]->send(0, 5, bytes("second"), far());
  const auto second = group[0]->receive_any(5, far());
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->from, 2);
  EXPECT_EQ(second->from, 1);
  EXPECT_EQ(text(*second), "second");
  EXPECT_FALSE(group[0]->receive_any(5, deadline_in(5ms)).has_value());
}

TEST_P(TransportConformance, NamesTheSilentPeerAtTheDeadline) {
  Group group = make(3);
  const auto start = Clock::now();
  try {
    group[0]->receive(2, 9, deadline_in(50ms));
    FAIL() << "received a message nobody sent";
  } catch (const PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 2"));
  }
  const double waited = seconds_between(start, Clock::now());
  EXPECT_GE(waited, 0.049);
  EXPECT_LT(waited, 2.0);
  // The silent peer may still speak later.
  group[2]->send(0, 9, bytes("late"), far());
  EXPECT_EQ(text(group[0]->receive(2, 9, far())), "late");
}

TEST_P(TransportConformance, UnblocksEveryWaiterOfAClosedPeerAndNamesIt) {
  Group group = make(4);
  const auto start = Clock::now();
  const auto errors = run_ranks(4, [&](Rank rank) {
    if (rank == 2) {
      group[2]->close();
      group[2]->close();
    } else {
      group[rank]->receive(2, 1, far());
    }
  });
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(10.0));
  for (const Rank rank : {0, 1, 3}) EXPECT_THAT(errors[rank], HasSubstr("rank 2"));
  EXPECT_EQ(group[0]->gone(2), "has closed");
  EXPECT_EQ(group[0]->gone(1), "");
  EXPECT_THROW(group[0]->send(2, 1, {}, deadline_in(2s)), PeerError);
  group[0]->send(1, 1, bytes("still here"), far());
  EXPECT_EQ(text(group[1]->receive(0, 1, far())), "still here");
}

TEST_P(TransportConformance, UnblocksItsOwnWaitersWhenClosed) {
  Group group = make(2);
  const auto errors = run_ranks(4, [&](Rank thread) {
    if (thread == 0) group[0]->receive(1, 1, far());
    if (thread == 1) group[0]->receive(0, 2, far());
    if (thread == 2) static_cast<void>(group[0]->receive_any(3, far()));
    if (thread == 3) group[0]->close();
  });
  for (int thread = 0; thread < 3; ++thread) EXPECT_NE(errors[thread], "") << thread;
  EXPECT_THROW(group[0]->receive(1, 1, far()), PeerError);
  EXPECT_THROW(group[0]->try_receive(1), PeerError);
  EXPECT_THROW(group[0]->send(1, 1, {}, far()), PeerError);
}

TEST_P(TransportConformance, DeliversWhatALostPeerHadSent) {
  Group group = make(2);
  group[1]->send(0, 4, bytes("last words"), far());
  group[1].reset();
  EXPECT_EQ(text(group[0]->receive(1, 4, far())), "last words");
  try {
    group[0]->receive(1, 4, far());
    FAIL() << "received from a destroyed rank";
  } catch (const PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1"));
  }
}

TEST_P(TransportConformance, GoesOnWithoutAPeerThatItGivesUp) {
  Group group = make(3);
  group[0]->send(1, 4, bytes("last words"), far());
  group[0]->give_up(1);
  EXPECT_NE(group[0]->gone(1), "");
  EXPECT_EQ(group[0]->gone(2), "");
  EXPECT_THROW(group[0]->send(1, 4, {}, far()), PeerError);
  EXPECT_EQ(text(group[1]->receive(0, 4, far())), "last words");
  try {
    group[1]->send(0, 4, bytes("too late"), far());
  } catch (const PeerError&) {  // it knows already
  }
  group[2]->send(0, 4, bytes("here"), far());
  EXPECT_EQ(text(*group[0]->receive_any(4, far())), "here");
  EXPECT_FALSE(group[0]->try_receive(4).has_value());
}

TEST_P(TransportConformance, ServesSeveralThreadsOfOneRankAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kMessages = 200;
  Group group = make(2);
  std::atomic<int> shared_sum{0};
  // Each thread has a tag of its own, in order, and all share tag 99, each message to one of them.
  const auto errors = run_ranks(2 * kThreads, [&](Rank worker) {
    Transport& transport = *group[worker / kThreads];
    const Rank peer = 1 - worker / kThreads;
    const Tag own = static_cast<Tag>(worker % kThreads);
    for (int i = 0; i < kMessages; ++i) {
      transport.send(peer, own, number(i), far());
      transport.send(peer, 99, number(1), far());
      EXPECT_EQ(text(transport.receive(peer, own, far())), std::to_string(i));
      shared_sum += std::stoi(text(transport.receive(peer, 99, far())));
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2 * kThreads));
  EXPECT_EQ(shared_sum, 2 * kThreads * kMessages);
}

using TransportConformanceDeathTest = TransportConformance;

TEST_P(TransportConformanceDeathTest, TreatsARankOutsideTheGroupAsOurMistake) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Group group = make(2);
  EXPECT_DEATH(group[0]->send(2, 0, {}, far()), "no rank 2");
  EXPECT_DEATH(group[0]->receive(-1, 0, far()), "no rank -1");
}

std::string suite_name(
    const testing::TestParamInfo<std::tuple<TransportRegistry::Entry, Wrapping>>& test) {
  static const char* const kWrappings[] = {"plain", "metered", "faultless"};
  std::string name =
      std::get<0>(test.param).name + "_" + kWrappings[static_cast<int>(std::get<1>(test.param))];
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

const auto kAll =
    testing::Combine(testing::ValuesIn(transports().entries()),
                     testing::Values(Wrapping::kPlain, Wrapping::kMetered, Wrapping::kFaultless));
INSTANTIATE_TEST_SUITE_P(Registry, TransportConformance, kAll, suite_name);
INSTANTIATE_TEST_SUITE_P(Registry, TransportConformanceDeathTest, kAll, suite_name);

TEST(TransportRegistry, RefusesAnEmptyGroupAndAnUnknownName) {
  EXPECT_THROW(transports().make("in-process", 0), ConfigError);
  try {
    transports().make("in-proces", 2);
    FAIL() << "made a transport of an unknown name";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("in-process"));
  }
}

}  // namespace
}  // namespace cohort::transport
