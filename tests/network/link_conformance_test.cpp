// What every link promises, over every way a link can go: frames and memory.
#include "network/link_conformance.h"

#include <gmock/gmock.h>

#include <thread>

namespace cohort::network {
namespace {

using test::Frame;
using test::kData;
using test::Pair;
using test::Recorder;
using test::run_for;
using test::run_until;
using test::some_bytes;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST_P(LinkConformance, KnowsWhoIsThereAndHow) {
  make();
  EXPECT_TRUE(pair_->accepted->local());
  EXPECT_TRUE(pair_->connected->local());
  EXPECT_EQ(pair_->accepted->peer(), test::worker(3));
  EXPECT_EQ(pair_->connected->peer(), test::server(0));
  EXPECT_THAT(pair_->accepted->peer_text(), HasSubstr("worker 3"));
  EXPECT_THAT(pair_->accepted->peer_text(), HasSubstr(GetParam().says));
  EXPECT_THAT(pair_->connected->peer_text(), HasSubstr("server 0"));
  EXPECT_THAT(pair_->connected->peer_text(), HasSubstr(GetParam().says));
  EXPECT_TRUE(pair_->listener->refusals().empty());
}

TEST_P(LinkConformance, CarriesFramesOfEverySizeInOrder) {
  make_and_listen();
  const std::vector<std::size_t> sizes = {0,
                                          1,
                                          63,
                                          64,
                                          4095,
                                          4096,
                                          4097,
                                          8191,
                                          8192,
                                          16320,
                                          32768,
                                          65537,
                                          kRingLongest,
                                          kRingLongest + 1,
                                          kMaxPayload - 1,
                                          kMaxPayload};
  const std::size_t count = 3 * sizes.size();
  for (std::size_t i = 0; i < count; ++i) {
    FrameHeader header{.type = kData, .detail = static_cast<std::uint32_t>(i), .sequence = i};
    header.incarnation = 7;
    header.place = i << 40;
    const Bytes payload = some_bytes(sizes[i % sizes.size()], static_cast<unsigned>(i));
    const auto cut = payload.size() / 3;
    const auto first = std::span(payload).first(i % 2 == 0 ? payload.size() : cut);
    pair_->connected->send(header, first, Kept::kCopy, std::span(payload).subspan(first.size()));
  }
  ASSERT_TRUE(run_until(io_, [&] { return at_server_.frames.size() == count; }));
  for (std::size_t i = 0; i < count; ++i) {
    const Frame& frame = at_server_.frames[i];
    EXPECT_EQ(frame.header.type, kData);
    EXPECT_EQ(frame.header.sequence, i);
    EXPECT_EQ(frame.header.detail, i);
    EXPECT_EQ(frame.header.incarnation, 7);
    EXPECT_EQ(frame.header.place, i << 40);
    EXPECT_EQ(frame.header.job, job_id_of("test"));
    EXPECT_EQ(frame.header.length, frame.payload.size());
    EXPECT_TRUE(frame.payload == some_bytes(sizes[i % sizes.size()], static_cast<unsigned>(i)))
        << i;
  }
  EXPECT_FALSE(at_server_.lost);
  EXPECT_EQ(pair_->connected->unsent(), 0);
  EXPECT_EQ(pair_->connected->bytes_sent(), pair_->accepted->bytes_received());
}

TEST_P(LinkConformance, PutsPayloadsWhereTheHandlerWants) {
  make_and_listen();
  const Bytes sent = some_bytes(3 * kMaxPayload);
  Bytes memory(sent.size());
  std::vector<const std::byte*> shown;
  at_server_.place = [&](const FrameHeader& header) {
    return std::span(memory).subspan(header.place, header.length);
  };
  at_server_.arrived = [&](Link&, const FrameHeader&, std::span<const std::byte> payload) {
    shown.push_back(payload.data());
  };
  const std::vector<std::size_t> sizes = {100, 5000, 300000, kMaxPayload};
  std::vector<std::size_t> places;
  std::size_t at = 0;
  for (std::size_t i = 0; at < sent.size(); ++i) {
    const std::size_t size = std::min(sizes[i % sizes.size()], sent.size() - at);
    pair_->connected->send({.type = kData, .place = at}, std::span(sent).subspan(at, size));
    places.push_back(at);
    at += size;
  }
  ASSERT_TRUE(run_until(io_, [&] { return shown.size() == places.size(); }));
  EXPECT_TRUE(memory == sent);
  for (std::size_t i = 0; i < places.size(); ++i) EXPECT_EQ(shown[i], memory.data() + places[i]);
}

TEST_P(LinkConformance, SendsAFrameAheadOfAllThatWait) {
  make_and_listen();
  constexpr std::size_t kFrames = 60;
  const Bytes payload = some_bytes(pair_->connected->piece_bytes(), 5);
  for (std::size_t i = 0; i < kFrames; ++i) {
    FrameHeader header;
    header.type = kData;
    header.sequence = i;
    pair_->connected->send(header, payload, Kept::kLent);
  }
  FrameHeader ahead;
  ahead.type = kData;
  ahead.sequence = 1000;
  pair_->connected->send_ahead(ahead);
  ASSERT_TRUE(run_until(io_, [&] { return at_server_.frames.size() == kFrames + 1; }));
  std::size_t next = 0;
  std::size_t before = 0;  // that one
  for (const Frame& frame : at_server_.frames) {
    if (frame.header.sequence == 1000) {
      before = next;
      continue;
    }
    EXPECT_EQ(frame.header.sequence, next++);
    EXPECT_TRUE(frame.payload == payload) << next;
  }
  EXPECT_LT(before, kFrames / 2);
}

TEST_P(LinkConformance, AnswersFromWithinACall) {
  make_and_listen();
  at_server_.arrived = [](Link& link, const FrameHeader& header,
                          std::span<const std::byte> payload) {
    link.send({.type = kData, .sequence = header.sequence}, payload);
  };
  std::uint64_t rounds = 0;
  at_worker_.arrived = [&](Link& link, const FrameHeader&, std::span<const std::byte> payload) {
    if (++rounds < 500) link.send({.type = kData, .sequence = rounds}, payload);
  };
  pair_->connected->send({.type = kData}, some_bytes(200));
  ASSERT_TRUE(run_until(io_, [&] { return rounds == 500; }));
  EXPECT_EQ(at_worker_.frames.back().header.sequence, 499);
  EXPECT_TRUE(at_worker_.frames.back().payload == some_bytes(200));
}

TEST_P(LinkConformance, FloodsInBothDirectionsAtOnceEnd) {
  make_and_listen();
  constexpr std::size_t kFrames = 32;
  const Bytes payload = some_bytes(kMaxPayload - 64);
  std::size_t good = 0;
  const auto check = [&](Link&, const FrameHeader&, std::span<const std::byte> got) {
    good += std::equal(got.begin(), got.end(), payload.begin(), payload.end()) ? 1 : 0;
  };
  std::size_t arrived = 0;
  at_server_.arrived = at_worker_.arrived = [&](Link& link, const FrameHeader& header,
                                                std::span<const std::byte> got) {
    check(link, header, got);
    ++arrived;
  };
  for (std::size_t i = 0; i < kFrames; ++i) {
    pair_->connected->send({.type = kData, .sequence = i}, payload, Kept::kLent);
    pair_->accepted->send({.type = kData, .sequence = i}, payload, Kept::kLent);
    pair_->accepted->send({.type = kData}, std::span(payload).first(10));
  }
  EXPECT_TRUE(run_until(
      io_, [&] { return arrived == 3 * kFrames; }, 30s));
  EXPECT_EQ(good, 2 * kFrames);
  EXPECT_FALSE(at_server_.lost || at_worker_.lost);
}

TEST_P(LinkConformance, FloodsBetweenThreadsEnd) {
  make();
  boost::asio::io_context& here = io_;
  constexpr std::size_t kFrames = 30;
  constexpr std::size_t kBytes = 700001;
  // Each end in a thread of its own, as processes are.
  const auto flood = [&](boost::asio::io_context& io, Link& link) {
    Recorder recorder;
    std::size_t arrived = 0;
    recorder.arrived = [&](Link&, const FrameHeader&, std::span<const std::byte>) { ++arrived; };
    link.set_handler(recorder);
    for (std::size_t i = 0; i < kFrames; ++i) {
      link.send({.type = kData, .sequence = i}, some_bytes(kBytes, static_cast<unsigned>(i)));
    }
    const bool done = run_until(
        io, [&] { return (arrived == kFrames && link.unsent() == 0) || recorder.lost; }, 30s);
    for (std::size_t i = 0; i < recorder.frames.size(); ++i) {
      EXPECT_EQ(recorder.frames[i].header.sequence, i);
      EXPECT_TRUE(recorder.frames[i].payload == some_bytes(kBytes, static_cast<unsigned>(i)));
    }
    return done && arrived == kFrames;
  };
  boost::asio::io_context there{1};
  auto other = std::make_unique<Pair>();
  {
    // A second connection, whose connecting end lives on the other loop.
    connecting_.address = pair_->listener->address();
    pair_->accepted.reset();
    other->connector = connect(
        there, connecting_, deadline_in(5s),
        [&](std::unique_ptr<Link> link) { other->connected = std::move(link); },
        [&](const ConnectFailure& failure) { other->failure = failure; });
    const Deadline deadline = deadline_in(5s);
    while (!(other->connected && pair_->accepted) && Clock::now() < deadline) {
      run_for(there, 1ms);
      run_for(here, 1ms);
    }
    ASSERT_TRUE(other->connected && pair_->accepted);
  }
  bool there_is_done = false;
  std::thread thread([&] { there_is_done = flood(there, *other->connected); });
  const bool here_is_done = flood(here, *pair_->accepted);
  thread.join();
  EXPECT_TRUE(here_is_done);
  EXPECT_TRUE(there_is_done);
}

TEST_P(LinkConformance, SaysWhenAllThatHadToWaitIsSent) {
  make({.silence = 30s});
  pair_->connected->set_handler(at_worker_);
  const Bytes memory = some_bytes(kMaxPayload);
  pair_->connected->send({.type = kData}, std::span(memory).first(1000));
  EXPECT_EQ(at_worker_.times_all_sent, 0);  // it did not have to wait, and never from within send()
  while (pair_->connected->unsent() == 0) {
    pair_->connected->send({.type = kData}, memory, Kept::kLent);
  }
  const int before = at_worker_.times_all_sent;
  pair_->accepted->set_handler(at_server_);
  ASSERT_TRUE(run_until(io_, [&] { return at_worker_.times_all_sent > before; }));
  EXPECT_EQ(pair_->connected->unsent(), 0);
}

TEST_P(LinkConformance, LentMemoryIsReadUntilItIsCopied) {
  make({.silence = 30s, .max_unsent = kMaxPayload});
  pair_->connected->set_handler(at_worker_);
  const Bytes expected = some_bytes(kMaxPayload);
  Bytes memory = expected;
  for (int i = 0; i < 40; ++i) {
    pair_->connected->send({.type = kData}, std::span(memory).first(1000), Kept::kLent,
                           std::span(memory).subspan(1000));
  }
  ASSERT_GT(pair_->connected->unsent(), 0);  // nobody reads yet
  pair_->connected->copy_lent({});
  pair_->connected->copy_lent(memory);
  pair_->connected->send({.type = kData}, {});  // however much had to be copied
  std::fill(memory.begin(), memory.end(), std::byte{0});
  pair_->accepted->set_handler(at_server_);
  ASSERT_TRUE(run_until(io_, [&] { return at_server_.frames.size() == 41; }));
  at_server_.frames.pop_back();
  for (const Frame& frame : at_server_.frames) EXPECT_TRUE(frame.payload == expected);
  EXPECT_EQ(pair_->connected->unsent(), 0);
}

TEST_P(LinkConformance, EndsWhenThePeerDoesNotReadAndTooMuchWaits) {
  make({.silence = 30s, .max_unsent = 16 << 20});
  pair_->connected->set_handler(at_worker_);
  const Bytes payload = some_bytes(kMaxPayload);
  // What is lent costs nothing.
  for (int i = 0; i < 100; ++i) pair_->connected->send({.type = kData}, payload, Kept::kLent);
  run_for(io_, 20ms);
  EXPECT_EQ(at_worker_.losses, 0);
  for (int i = 0; i < 100; ++i) pair_->connected->send({.type = kData}, payload, Kept::kCopy);
  EXPECT_EQ(at_worker_.losses, 0);  // never from within a call
  ASSERT_TRUE(run_until(io_, [&] { return at_worker_.lost.has_value(); }));
  EXPECT_THAT(*at_worker_.lost, HasSubstr("does not read"));
  run_for(io_, 20ms);
  EXPECT_EQ(at_worker_.losses, 1);
}

INSTANTIATE_TEST_SUITE_P(
    , LinkConformance,
    ::testing::Values(LinkWay{"Tcp", LinkKind::kTcp, "at 127.0.0.1:"},
                      LinkWay{"Token", LinkKind::kToken, "by TLS"},
                      LinkWay{"Certificates", LinkKind::kCertificates, "by TLS"},
                      LinkWay{"Unix", LinkKind::kUnix, "by a Unix socket"},
                      LinkWay{"SharedMemory", LinkKind::kSharedMemory, "by shared memory"}),
    [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace cohort::network
