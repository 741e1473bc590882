// Strangers at the door: refused, counted, told nothing, and no trouble to those who belong here.
#include "network/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <thread>

#include "core/patience.h"
#include "core/random.h"
#include "network/link_pair.h"
#include "network/raw_peer.h"

namespace cohort::network {
namespace {

using test::frame_bytes;
using test::hello_bytes;
using test::RawPeer;
using test::Recorder;
using test::run_for;
using test::run_until;
using test::server;
using test::worker;
using ::testing::Contains;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class ListenerTest : public ::testing::Test {
 protected:
  void start(ListenerOptions options = {}) {
    options.address = {.host = "127.0.0.1"};
    options.self = server(0);
    listener_ =
        listen(io_, options,
               {.admit = [this](const Greeting& hello) { return Objection{admit_(hello.self)}; },
                .accepted =
                    [this](std::unique_ptr<Link> link) {
                      link->set_handler(recorder_);
                      links_.push_back(std::move(link));
                    },
                .log = [this](const std::string& line) { log_.push_back(line); }});
  }
  RawPeer stranger() { return RawPeer(listener_->address().port); }
  std::uint64_t refusals(const std::string& kind) {
    const auto found = listener_->refusals().find(kind);
    return found == listener_->refusals().end() ? 0 : found->second;
  }
  // Sends it away for `kind`, without a word.
  void expect_refused(std::span<const std::byte> bytes, const std::string& kind) {
    RawPeer peer = stranger();
    peer.write(bytes);
    const std::uint64_t before = refusals(kind);
    EXPECT_TRUE(run_until(io_, [&] { return refusals(kind) == before + 1; })) << kind;
    EXPECT_TRUE(run_until(io_, [&] { return peer.closed(); })) << kind;
    EXPECT_TRUE(peer.received().empty()) << kind;
    EXPECT_TRUE(links_.empty());
  }
  // Refuses it and says why.
  void expect_told(const Bytes& bytes, const std::string& kind, const std::string& why) {
    RawPeer peer = stranger();
    peer.write(bytes);
    EXPECT_TRUE(run_until(io_, [&] { return peer.closed(); })) << kind;
    EXPECT_EQ(refusals(kind), 1) << kind;
    const Bytes answer = peer.received();
    ASSERT_GT(answer.size(), kFrameHeaderBytes) << kind;
    const auto verdict = judge_answer(
        std::span(answer).first<kFrameHeaderBytes>(), std::span(answer).subspan(kFrameHeaderBytes),
        {.self = worker(0), .peer = server(0), .silence = 1s}, std::nullopt);
    ASSERT_TRUE(std::holds_alternative<Refused>(verdict)) << kind;
    EXPECT_THAT(std::get<Refused>(verdict).reason, HasSubstr(why));
  }
  std::chrono::milliseconds time_of_an_honest_handshake() {
    const auto start = Clock::now();
    const std::size_t before = links_.size();
    std::unique_ptr<Link> mine;
    const auto connector = connect(
        io_,
        {.address = listener_->address(), .self = worker(1), .peer = server(0), .credentials = {}},
        deadline_in(5s), [&](std::unique_ptr<Link> link) { mine = std::move(link); },
        [](const ConnectFailure& failure) { ADD_FAILURE() << failure.reason; });
    EXPECT_TRUE(run_until(
        io_, [&] { return mine && links_.size() == before + 1; }, 5s));
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  }

  boost::asio::io_context io_{1};
  Recorder recorder_;
  std::function<std::string(const Identity&)> admit_ = [](const Identity&) { return ""; };
  std::vector<std::string> log_;
  std::vector<std::unique_ptr<Link>> links_;
  std::unique_ptr<Listener> listener_;
};

long resident_bytes() {
  long pages = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_F(ListenerTest, TellsStrangersNothing) {
  start();
  expect_refused(test::some_bytes(500), "not a cohort frame");
  expect_refused(std::as_bytes(std::span(std::string_view("GET / HTTP/1.0\r\n\r\n"))),
                 "not a cohort frame");
  const unsigned char client_hello[] = {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 7, 7, 7, 7};
  expect_refused(std::as_bytes(std::span(client_hello)), "not a cohort frame");
  EXPECT_THAT(log_, Contains(HasSubstr("127.0.0.1:")));

  expect_refused(hello_bytes(worker(0, "other"), server(0, "other")), "wrong job");

  Bytes oversize = frame_bytes({.type = kHello, .job = job_id_of("test")}, Bytes(16));
  put_number(oversize.data() + 8, std::uint32_t{0xfffffff0});
  put_number(oversize.data() + 60, crc32c(std::span(oversize).first(60)));
  expect_refused(oversize, "not a cohort frame");

  Bytes damaged = hello_bytes(worker(0), server(0));
  damaged[20] ^= std::byte{1};
  expect_refused(damaged, "not a cohort frame");
  EXPECT_TRUE(recorder_.frames.empty());
}

TEST_F(ListenerTest, TellsMembersOfTheJobWhyTheyAreNotWelcome) {
  admit_ = [](const Identity& who) { return who == worker(5) ? "there are only 4 workers" : ""; };
  start();
  const Bytes good = hello_bytes(worker(0), server(0));
  const FrameHeader header{.type = kHello, .job = job_id_of("test")};
  const auto payload = std::span(good).subspan(kFrameHeaderBytes);
  expect_told(frame_bytes(header, payload, 9), "wrong version", "version 9");
  expect_told(hello_bytes(worker(0), server(1)), "wrong address", "this is server 0");
  expect_told(hello_bytes(worker(5), server(0)), "not admitted", "only 4 workers");
  Bytes lying = frame_bytes(header, Bytes(17));
  expect_told(lying, "damaged hello", "no greeting");
  EXPECT_TRUE(links_.empty());
  admit_ = [](const Identity&) -> std::string { throw RunError("out of memory"); };
  listener_.reset();
  start();
  expect_told(good, "not admitted", "out of memory");
}

TEST_F(ListenerTest, SendsAwayWhoIsSilentOrSlowAfterThreeSeconds) {
  start();
  RawPeer silent = stranger();
  RawPeer slow = stranger();
  RawPeer gone = stranger();
  gone.write("CHRT");
  ::shutdown(gone.socket(), SHUT_WR);
  ASSERT_TRUE(run_until(io_, [&] { return refusals("closed early") == 1; }));
  const Bytes hello = hello_bytes(worker(0), server(0));
  const auto begin = Clock::now();
  for (std::size_t i = 0; !slow.closed() && i < 60; ++i) {
    slow.write(std::span(hello).subspan(i, 1));
    run_for(io_, 100ms);
  }
  EXPECT_TRUE(run_until(
      io_, [&] { return silent.closed() && slow.closed(); }, 4s));
  EXPECT_GE(Clock::now() - begin, 2900ms);
  EXPECT_LT(Clock::now() - begin, patiently(4000ms));
  EXPECT_EQ(refusals("silent"), 2);
  EXPECT_TRUE(silent.received().empty());
  EXPECT_TRUE(slow.received().empty());
  EXPECT_TRUE(links_.empty());
}

TEST_F(ListenerTest, TwoThousandIdleConnectionsDoNoHarm) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, 2300));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t count = limit.rlim_cur >= 2300 ? 2000 : limit.rlim_cur / 2;
  start();
  std::vector<RawPeer> idle;
  idle.reserve(count);
  time_of_an_honest_handshake();  // so that what is allocated once is there
  const long before = resident_bytes();
  std::chrono::milliseconds slowest{0};
  std::size_t accepted_links = links_.size();
  for (std::size_t i = 0; i < count; ++i) {
    idle.push_back(stranger());
    if (i % 10 == 0) io_.poll();
    io_.restart();
    if (i % 500 == 250) slowest = std::max(slowest, time_of_an_honest_handshake());
  }
  slowest = std::max(slowest, time_of_an_honest_handshake());
  EXPECT_LT(slowest, 500ms);
  EXPECT_EQ(links_.size(), accepted_links + count / 500 + (count % 500 > 250 ? 1 : 0) + 1);
  EXPECT_LT(resident_bytes() - before, 10 << 20);
  EXPECT_GE(refusals("too many strangers"), count - 3 * kStrangers);
  EXPECT_LE(log_.size(), 30);
  std::size_t told = 0;
  for (RawPeer& peer : idle) told += peer.received().size();
  EXPECT_EQ(told, 0);
}

TEST_F(ListenerTest, ThoseWhoSpeakAreNotDrivenOutByThoseWhoDoNot) {
  start();
  RawPeer honest = stranger();
  const Bytes hello = hello_bytes(worker(0), server(0));
  honest.write(std::span(hello).first(50));  // in the middle of its greeting
  run_for(io_, 20ms);
  std::vector<RawPeer> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(stranger());
    run_for(io_, 0ms);
    io_.poll();
  }
  ASSERT_TRUE(run_until(
      io_, [&] { return refusals("too many strangers") >= 200; }, 2s));
  honest.write(std::span(hello).subspan(50));
  EXPECT_TRUE(run_until(io_, [&] { return links_.size() == 1; }));
}

TEST_F(ListenerTest, GoesOnWhenThereAreNoDescriptorsLeft) {
  start();
  std::vector<RawPeer> peers;
  for (int i = 0; i < 10; ++i) peers.push_back(stranger());
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int next = ::dup(0);
  ::close(next);
  rlimit low = limit;
  low.rlim_cur = static_cast<rlim_t>(next);  // none can be opened any more
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const bool relieved = run_until(
      io_, [&] { return refusals("no descriptors left") >= 1; }, 2s);
  low.rlim_cur = static_cast<rlim_t>(next) + 3;
  ::setrlimit(RLIMIT_NOFILE, &low);
  run_for(io_, 400ms);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(relieved);
  EXPECT_LT(time_of_an_honest_handshake(), 2s);
}

TEST_F(ListenerTest, RefusesAnAddressThatIsTakenOrNotItsOwn) {
  start();
  boost::asio::io_context io;
  ListenerOptions options{.address = listener_->address(), .self = server(1)};
  const auto message = [&] {
    try {
      listen(io, options, {});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(), HasSubstr("another process listens there"));
  options.credentials.insecure = true;
  options.address = {.host = "203.0.113.77", .port = 0};
  EXPECT_THAT(message(), HasSubstr("none of this host's"));
}

TEST_F(ListenerTest, StopsAcceptingButLinksGoOn) {
  start();
  std::unique_ptr<Link> mine;
  Recorder here;
  const auto connector =
      connect(io_, {.address = listener_->address(), .self = worker(1), .peer = server(0)},
              deadline_in(5s), [&](std::unique_ptr<Link> link) { mine = std::move(link); }, {});
  ASSERT_TRUE(run_until(io_, [&] { return mine && links_.size() == 1; }));
  mine->set_handler(here);
  const std::uint16_t port = listener_->address().port;
  listener_->stop();
  EXPECT_THROW(RawPeer{port}, RunError);
  listener_.reset();
  mine->send({.type = test::kData}, test::some_bytes(1000));
  EXPECT_TRUE(run_until(io_, [&] { return recorder_.frames.size() == 1; }));
}

// What a member of the job can do wrong once it is in.
class MemberGoneMad : public ListenerTest {
 protected:
  std::string lost_after(const Bytes& bytes) {
    start();
    RawPeer peer = stranger();
    peer.write(hello_bytes(worker(0), server(0)));
    EXPECT_TRUE(run_until(io_, [&] { return links_.size() == 1; }));
    peer.write(bytes);
    EXPECT_TRUE(run_until(io_, [&] { return recorder_.lost.has_value(); }));
    const std::string reason = recorder_.lost.value_or("");
    EXPECT_LT(time_of_an_honest_handshake(), 1s);  // others are as welcome as before
    EXPECT_EQ(links_.size(), 2);
    links_.clear();
    recorder_.lost.reset();
    listener_.reset();
    return reason;
  }
};

TEST_F(MemberGoneMad, LosesItsLinkWithAReason) {
  const FrameHeader data{.type = test::kData, .job = job_id_of("test")};
  Bytes damaged = frame_bytes(data, test::some_bytes(100));
  damaged[kFrameHeaderBytes + 99] ^= std::byte{1};
  EXPECT_EQ(lost_after(damaged), "a payload with a wrong checksum");

  FrameHeader foreign = data;
  foreign.job = job_id_of("other");
  EXPECT_EQ(lost_after(frame_bytes(foreign)), "a frame of another job");
  for (const FrameType type : {0, 1, 2, 3, 7, 31}) {
    EXPECT_THAT(lost_after(frame_bytes({.type = type, .job = data.job})),
                HasSubstr("a frame of type " + std::to_string(type)));
  }
  // A heartbeat with a payload is none.
  EXPECT_THAT(lost_after(frame_bytes({.type = kHeartbeat, .job = data.job}, Bytes(9))),
              HasSubstr("a frame of type 4"));
  EXPECT_THAT(lost_after(frame_bytes(data, {}, 9)), HasSubstr("version 9"));
  Bytes oversize = frame_bytes(data);
  put_number(oversize.data() + 8, std::uint32_t{kMaxPayload + 1});
  put_number(oversize.data() + 60, crc32c(std::span(oversize).first(60)));
  EXPECT_THAT(lost_after(oversize), HasSubstr("over the 1048576 allowed"));
  EXPECT_EQ(lost_after(test::some_bytes(64)), "not a cohort frame");
  EXPECT_TRUE(recorder_.frames.empty());
}

TEST_F(ListenerTest, LastsWhateverStrangersSay) {
  start();
  RandomStream random(1, "strangers");
  for (int i = 0; i < 300; ++i) {
    RawPeer peer = stranger();
    Bytes bytes = hello_bytes(worker(0), server(0));
    bytes[random.below(bytes.size())] ^= static_cast<std::byte>(1 + random.below(255));
    bytes.resize(1 + random.below(bytes.size()));
    peer.write(bytes);
    io_.poll();
    io_.restart();
  }
  EXPECT_LT(time_of_an_honest_handshake(), 2s);
}

}  // namespace
}  // namespace cohort::network
