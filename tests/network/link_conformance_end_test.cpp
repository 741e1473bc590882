// What every link promises, over every way a link can go: how it ends, and how that is noticed.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <thread>

#include "core/patience.h"
#include "network/link_conformance.h"

namespace cohort::network {
namespace {

using test::Frame;
using test::kData;
using test::Recorder;
using test::run_for;
using test::run_until;
using test::some_bytes;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST_P(LinkConformance, SaysGoodbyeAfterAllThatWasSent) {
  make_and_listen();
  for (std::uint64_t i = 0; i < 10; ++i) {
    pair_->connected->send({.type = kData, .sequence = i}, some_bytes(kMaxPayload));
  }
  pair_->connected->close_after_sending();
  pair_->connected->send({.type = kData, .sequence = 99}, {});  // too late: dropped
  pair_->connected.reset();                                     // what was promised is still sent
  ASSERT_TRUE(run_until(io_, [&] { return at_server_.lost.has_value(); }));
  EXPECT_EQ(*at_server_.lost, "closed");
  ASSERT_EQ(at_server_.frames.size(), 10);
  EXPECT_EQ(at_server_.frames.back().header.sequence, 9);
  EXPECT_FALSE(at_worker_.lost);
}

TEST_P(LinkConformance, BothMaySayGoodbyeAtOnce) {
  make_and_listen();
  pair_->connected->close_after_sending();
  pair_->accepted->close_after_sending();
  run_for(io_, 50ms);
  EXPECT_FALSE(at_server_.lost || at_worker_.lost);
}

TEST_P(LinkConformance, NoticesAPeerThatIsGone) {
  make_and_listen({.silence = 60s});  // it is not silence that tells
  pair_->connected->send({.type = kData}, some_bytes(100000));
  ASSERT_TRUE(run_until(io_, [&] { return at_server_.frames.size() == 1; }));
  pair_->connected.reset();
  ASSERT_TRUE(run_until(
      io_, [&] { return at_server_.lost.has_value(); }, 10s));
  EXPECT_THAT(*at_server_.lost, HasSubstr("without a goodbye"));
  EXPECT_EQ(at_server_.losses, 1);
  pair_->accepted->send({.type = kData}, some_bytes(10));  // dropped, and that is all
  run_for(io_, 20ms);
  EXPECT_EQ(at_server_.losses, 1);
}

TEST_P(LinkConformance, HeartbeatsKeepAnIdleLinkAlive) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    make_and_listen({.silence = 300ms});
    if (run_for(io_, 600ms) > 80ms) continue;  // no wonder if one was missed
    EXPECT_FALSE(at_server_.lost || at_worker_.lost);
    EXPECT_LT(Clock::now() - pair_->accepted->last_heard(), patiently(250ms));
    return;
  }
  GTEST_SKIP() << "the machine is too busy";
}

TEST_P(LinkConformance, NoticesAPeerThatIsSilent) {
  make({.silence = 300ms});
  // An end on a loop that nobody runs is as one whose process was stopped.
  boost::asio::io_context stopped{1};
  connecting_.address = pair_->listener->address();
  pair_->accepted.reset();
  std::unique_ptr<Link> silent;
  const auto connector = connect(
      stopped, connecting_, deadline_in(5s),
      [&](std::unique_ptr<Link> link) { silent = std::move(link); },
      [](const ConnectFailure& failure) { ADD_FAILURE() << failure.reason; });
  const Deadline deadline = deadline_in(5s);
  while (!(silent && pair_->accepted) && Clock::now() < deadline) {
    run_for(stopped, 1ms);
    run_for(io_, 1ms);
  }
  ASSERT_TRUE(silent && pair_->accepted);
  Recorder recorder;
  const auto start = Clock::now();
  pair_->accepted->set_handler(recorder);
  ASSERT_TRUE(run_until(
      io_, [&] { return recorder.lost.has_value(); }, 3s));
  EXPECT_THAT(*recorder.lost, HasSubstr("nothing was heard from it for 0.3 s"));
  EXPECT_GE(Clock::now() - start, 290ms);
}

TEST_P(LinkConformance, AnEndThatWasStoppedItselfReadsBeforeItJudges) {
  make_and_listen({.silence = 200ms});
  pair_->connected->send({.type = kData}, some_bytes(10));
  std::this_thread::sleep_for(300ms);  // the loop of both ends stands still
  ASSERT_TRUE(run_until(
      io_, [&] { return at_server_.frames.size() == 1; }, 2s));
  EXPECT_FALSE(at_server_.lost) << *at_server_.lost;
}

TEST_P(LinkConformance, AHandlerThatThrowsEndsOnlyItsLink) {
  make_and_listen();
  at_server_.arrived = [](Link&, const FrameHeader&, std::span<const std::byte>) {
    throw PeerError("the gradient is not finite");
  };
  pair_->connected->send({.type = kData}, some_bytes(10000));
  ASSERT_TRUE(run_until(io_, [&] { return at_server_.lost && at_worker_.lost; }));
  EXPECT_EQ(*at_server_.lost, "the gradient is not finite");
  EXPECT_THAT(*at_worker_.lost, HasSubstr("without a goodbye"));

  connecting_.address = pair_->listener->address();
  pair_->accepted.reset();
  pair_->connected.reset();
  pair_->connector = connect(
      io_, connecting_, deadline_in(5s),
      [&](std::unique_ptr<Link> link) { pair_->connected = std::move(link); },
      [](const ConnectFailure& failure) { ADD_FAILURE() << failure.reason; });
  EXPECT_TRUE(run_until(io_, [&] { return pair_->accepted && pair_->connected; }));
}

TEST_P(LinkConformance, APlaceOfTheWrongSizeEndsTheLink) {
  make_and_listen();
  Bytes memory(10);
  at_server_.place = [&](const FrameHeader&) { return std::span(memory); };
  pair_->connected->send({.type = kData}, some_bytes(100000));
  ASSERT_TRUE(run_until(io_, [&] { return at_server_.lost.has_value(); }));
  EXPECT_THAT(*at_server_.lost, HasSubstr("a place of 10 bytes"));
}

TEST_P(LinkConformance, NoticesAPeerThatWasKilled) {
  listening_.links.silence = connecting_.links.silence = 60s;
  std::unique_ptr<Link> accepted;
  Recorder recorder;
  auto listener = listen(io_, listening_,
                         {.admit = {},
                          .accepted =
                              [&](std::unique_ptr<Link> link) {
                                accepted = std::move(link);
                                accepted->set_handler(recorder);
                              },
                          .log = {}});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // floods until it is killed
    boost::asio::io_context io{1};
    connecting_.address = listener->address();
    std::unique_ptr<Link> link;
    Recorder ignored;
    const auto connector = connect(
        io, connecting_, deadline_in(5s),
        [&](std::unique_ptr<Link> made) { link = std::move(made); },
        [](const ConnectFailure&) { ::_exit(1); });
    if (!run_until(io, [&] { return link != nullptr; })) ::_exit(1);
    link->set_handler(ignored);
    const Bytes payload = some_bytes(kMaxPayload);
    run_until(
        io,
        [&] {
          if (link->unsent() < (8U << 20)) link->send({.type = kData}, payload, Kept::kLent);
          return false;
        },
        20s);
    ::_exit(1);
  }
  EXPECT_TRUE(run_until(io_, [&] { return recorder.frames.size() >= 20; }));
  ::kill(child, SIGKILL);
  const auto start = Clock::now();
  EXPECT_TRUE(run_until(
      io_, [&] { return recorder.lost.has_value(); }, 2s));
  EXPECT_LT(Clock::now() - start, patiently(1s));
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  for (const Frame& frame : recorder.frames) EXPECT_EQ(frame.payload.size(), kMaxPayload);
}

}  // namespace
}  // namespace cohort::network
