// What is special to ranks of several processes, with the processes in memory, so that one of them
// can say anything.
#include "transport/rank_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "transport/in_process.h"
#include "transport/rank_threads.h"

namespace cohort::transport {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Ranks 0 and 1 here, and a process of ranks 2 and 3 that the test speaks for.
class RankTransport : public testing::Test {
 protected:
  RankTransport() {
    auto processes = make_in_process_group(2);
    other_ = std::move(processes[1]);
    ranks_ = make_rank_group(std::move(processes[0]), {2, 2}, {"", "", "rank 2 on node5"});
  }

  // As it goes between processes.
  void say(std::uint32_t from, std::uint32_t to, Tag tag, std::uint32_t kind,
           const std::string& text = "") {
    Bytes bytes(text.size() + 16);
    const std::uint32_t label[4] = {from, to, tag, kind};
    std::memcpy(bytes.data(), text.data(), text.size());
    std::memcpy(bytes.data() + text.size(), label, sizeof label);
    other_->send(0, 0, bytes, far());
  }

  // What a rank gets to hear when it waits for another.
  std::string error(Rank rank, Rank from) {
    try {
      ranks_[rank]->receive(from, 1, far());
    } catch (const PeerError& error) {
      return error.what();
    }
    return "";
  }

  std::unique_ptr<Transport> other_;
  std::vector<std::unique_ptr<Transport>> ranks_;
};

TEST_F(RankTransport, SendsToAnotherProcessOnceWithWhoAndWhomAtTheEnd) {
  const std::string text = "abc";
  ranks_[1]->send(3, 7, std::as_bytes(std::span(text)), far());
  const Message message = other_->receive(0, 0, far());
  ASSERT_EQ(message.payload.size(), 19U);
  EXPECT_EQ(std::memcmp(message.payload.data(), "abc", 3), 0);
  std::uint32_t label[4];
  std::memcpy(label, message.payload.data() + 3, sizeof label);
  EXPECT_THAT(label, testing::ElementsAre(1, 3, 7, 0));
}

TEST_F(RankTransport, LosesAllRanksOfALostProcessAndNoOthersAfterWhatTheyHadSent) {
  say(2, 1, 1, 0, "last words");
  other_->close();
  EXPECT_THAT(error(0, 2), HasSubstr("rank 2 on node5 has closed"));
  EXPECT_THAT(error(0, 3), HasSubstr("rank 3 has closed"));
  EXPECT_EQ(ranks_[1]->receive(2, 1, far()).payload.size(), 10U);
  EXPECT_THAT(error(1, 2), HasSubstr("rank 2"));
  EXPECT_THROW(ranks_[1]->send(3, 1, {}, far()), PeerError);
  ranks_[0]->send(1, 1, {}, far());
  EXPECT_TRUE(ranks_[1]->receive(0, 1, far()).payload.empty());
}

TEST_F(RankTransport, LosesOneRankOfAProcessWhenThatCloses) {
  say(3, 0, 0, 1);
  for (const Rank rank : {0, 1}) EXPECT_THAT(error(rank, 3), HasSubstr("rank 3 has closed"));
  say(2, 0, 1, 0, "x");
  EXPECT_EQ(ranks_[0]->receive(2, 1, far()).payload.size(), 1U);
  EXPECT_EQ(ranks_[0]->gone(2), "");
}

TEST_F(RankTransport, TellsOtherProcessesOnceThatARankCloses) {
  ranks_[1]->close();
  ranks_[1]->close();
  ranks_[1].reset();
  const Message message = other_->receive(0, 0, far());
  std::uint32_t label[4];
  ASSERT_EQ(message.payload.size(), sizeof label);
  std::memcpy(label, message.payload.data(), sizeof label);
  EXPECT_EQ(label[0], 1U);
  EXPECT_EQ(label[3], 1U);
  EXPECT_FALSE(other_->try_receive(0).has_value());
  say(2, 1, 1, 0, "too late");
  say(2, 0, 1, 0, "in time");
  EXPECT_EQ(ranks_[0]->receive(2, 1, far()).payload.size(), 7U);
}

class NonsenseBetweenProcesses : public RankTransport {};

TEST_F(NonsenseBetweenProcesses, EndsWhatIsHeardOfItsSender) {
  struct {
    std::uint32_t from, to, kind;
  } const cases[] = {{0, 1, 0}, {4, 1, 0}, {2, 2, 0}, {2, 99, 0}, {2, 0, 7}, {0, 0, 1}};
  for (const auto& one : cases) {
    auto processes = make_in_process_group(2);
    other_ = std::move(processes[1]);
    ranks_ = make_rank_group(std::move(processes[0]), {2, 2});
    say(one.from, one.to, 1, one.kind);
    for (const Rank rank : {0, 1}) {
      EXPECT_THAT(error(rank, 2), AllOf(HasSubstr("rank 2 is lost"), HasSubstr("makes no sense")));
    }
    EXPECT_EQ(ranks_[0]->gone(1), "");
  }
}

TEST_F(NonsenseBetweenProcesses, MayBeTooShort) {
  other_->send(0, 0, Bytes(15), far());
  EXPECT_THAT(error(0, 3), HasSubstr("rank 3 is lost"));
}

}  // namespace
}  // namespace cohort::transport
