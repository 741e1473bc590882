// What a link does at the edges of its life, seen by a peer that writes single bytes.
#include <gtest/gtest.h>

#include "core/patience.h"
#include "network/link_pair.h"
#include "network/raw_peer.h"

namespace cohort::network::test {
namespace {

using namespace std::chrono_literals;

class LinkEnd : public ::testing::Test {
 protected:
  void listen_with(LinkOptions links, const Credentials& credentials = {}) {
    listener_ = listen(io_,
                       {.address = {.host = "127.0.0.1"},
                        .self = server(0),
                        .credentials = credentials,
                        .links = links},
                       {.admit = {},
                        .accepted = [this](std::unique_ptr<Link> link) { accept(std::move(link)); },
                        .log = {}});
  }
  virtual void accept(std::unique_ptr<Link> link) { link_ = std::move(link); }

  // A member of the job, byte by byte. Payloads are wanted in `memory_`.
  RawPeer member(LinkOptions links = {}) {
    listen_with(links);
    RawPeer peer(listener_->address().port);
    peer.write(hello_bytes(worker(1), server(0)));
    EXPECT_TRUE(run_until(io_, [&] { return link_ != nullptr; }));
    recorder_.place = [this](const FrameHeader& header) {
      return std::span(memory_).first(header.length);
    };
    link_->set_handler(recorder_);
    return peer;
  }

  static Bytes frame_of(FrameType type, std::size_t length) {
    return frame_bytes({.type = type, .job = worker(0).job}, some_bytes(length));
  }

  boost::asio::io_context io_;
  Bytes memory_ = Bytes(128 << 10);
  Recorder recorder_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(LinkEnd, AClosedLinkWritesNoMoreWhereItsOwnerWantedThePayload) {
  RawPeer peer = member();
  const Bytes frame = frame_of(kData, 64 << 10);
  peer.write(std::span(frame).first(kFrameHeaderBytes + 1000));
  run_for(io_, 50ms);
  link_->close_after_sending();
  std::fill(memory_.begin(), memory_.end(), std::byte{0});  // it is somebody else's now
  peer.write(std::span(frame).subspan(kFrameHeaderBytes + 1000));
  run_for(io_, 100ms);
  EXPECT_EQ(memory_, Bytes(memory_.size()));
}

TEST_F(LinkEnd, APayloadThatComesInPartsIsThereWithItsLastByte) {
  RawPeer peer = member({.silence = 900ms});  // a look at the socket every 300 ms
  const Bytes frame = frame_of(kData, 128 << 10);
  peer.write(std::span(frame).first(kFrameHeaderBytes));
  run_for(io_, 50ms);
  peer.write(std::span(frame).subspan(kFrameHeaderBytes, 64 << 10));
  run_for(io_, 400ms);
  peer.write(std::span(frame).subspan(kFrameHeaderBytes + (64 << 10)));
  const auto start = Clock::now();
  EXPECT_TRUE(run_until(io_, [&] { return !recorder_.frames.empty(); }));
  EXPECT_LT(Clock::now() - start, patiently(150ms));
}

TEST_F(LinkEnd, AClosingLinkEndsThoughThePeerGoesOnTalking) {
  RawPeer peer = member({.silence = 300ms});
  link_->close_after_sending();
  link_.reset();
  const Bytes heartbeat = frame_of(kHeartbeat, 0);
  const auto start = Clock::now();
  while (!peer.closed() && Clock::now() - start < 5s) {
    peer.write(heartbeat);
    run_for(io_, 50ms);
  }
  EXPECT_LT(Clock::now() - start, patiently(3s));
}

class FirstWord : public LinkEnd {
 protected:
  void accept(std::unique_ptr<Link> link) override {
    link_ = std::move(link);
    link_->set_handler(recorder_);
    link_->send({.type = kData}, some_bytes(100));
  }
};

TEST_F(FirstWord, BehindTheWelcomeIsHeardAtOnceAlsoByTls) {
  const Credentials credentials{.token = std::string(64, 'a')};
  listen_with({}, credentials);
  Recorder here;
  std::unique_ptr<Link> connected;
  const auto start = Clock::now();
  const auto connector = connect(
      io_,
      {.address = listener_->address(),
       .self = worker(1),
       .peer = server(0),
       .credentials = credentials},
      deadline_in(5s),
      [&](std::unique_ptr<Link> link) {
        connected = std::move(link);
        connected->set_handler(here);
      },
      [&](const ConnectFailure& failure) { ADD_FAILURE() << failure.reason; });
  EXPECT_TRUE(run_until(io_, [&] { return !here.frames.empty(); }));
  EXPECT_LT(Clock::now() - start, patiently(700ms));  // before any heartbeat
}

}  // namespace
}  // namespace cohort::network::test
