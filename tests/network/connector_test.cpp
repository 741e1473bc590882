#include "network/connector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/patience.h"
#include "network/event_loop.h"
#include "network/link_pair.h"
#include "network/local_socket.h"
#include "network/raw_peer.h"

namespace cohort::network {
namespace {

using test::Pair;
using test::run_for;
using test::run_until;
using test::server;
using test::worker;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

class ConnectorTest : public ::testing::Test {
 protected:
  // A port at which nobody listens.
  std::uint16_t free_port() {
    Address address{.host = "127.0.0.1"};
    listen_at(address);
    return address.port;
  }
  void begin_connecting_to(const ConnectorOptions& options, std::chrono::milliseconds limit) {
    connector_ = connect(
        io_, options, deadline_in(limit),
        [this](std::unique_ptr<Link> link) { link_ = std::move(link); },
        [this](const ConnectFailure& failure) { failure_ = failure; });
  }
  void begin_listening(const ListenerOptions& options) {
    listener_ =
        listen(io_, options,
               {.admit =
                    [this](const Greeting& hello) {
                      greeted_ = hello;
                      ++greetings_;
                      return objection_;
                    },
                .accepted = [this](std::unique_ptr<Link> link) { accepted_ = std::move(link); },
                .log = [this](const std::string& line) { log_.push_back(line); }});
  }
  bool joined() {
    return run_until(io_, [&] { return (link_ && accepted_) || failure_; });
  }

  test::PrivateFolder folder_;
  boost::asio::io_context io_{1};
  Objection objection_;
  Greeting greeted_;
  int greetings_ = 0;
  std::vector<std::string> log_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<Link> accepted_;
  std::optional<ConnectFailure> failure_;
};

TEST_F(ConnectorTest, WaitsForAListenerThatComesLater) {
  const Address address{.host = "127.0.0.1", .port = free_port()};
  begin_connecting_to({.address = address, .self = worker(0), .peer = server(0)}, 5s);
  run_for(io_, 150ms);
  EXPECT_FALSE(link_ || failure_);
  begin_listening({.address = address, .self = server(0)});
  ASSERT_TRUE(joined());
  EXPECT_TRUE(link_);
}

TEST_F(ConnectorTest, WorksOnAnAttentiveLoopWhichEndsWithItsWork) {
  begin_listening({.address = {.host = "127.0.0.1"}, .self = server(0)});
  begin_connecting_to({.address = listener_->address(), .self = worker(0), .peer = server(0)}, 5s);
  std::function<void()> look = [&] {
    if (!link_ || !accepted_) return boost::asio::post(io_, look);
    listener_->stop();
    link_.reset();
    accepted_.reset();
  };
  boost::asio::post(io_, look);
  const auto start = Clock::now();
  run_with_spin(io_);
  EXPECT_LT(Clock::now() - start, patiently(4s));
  EXPECT_FALSE(failure_);
}

TEST_F(ConnectorTest, ResolvesNames) {
  begin_listening({.address = {.host = "localhost"}, .self = server(0)});
  EXPECT_EQ(listener_->address().host, "localhost");
  begin_connecting_to({.address = listener_->address(), .self = worker(0), .peer = server(0)}, 5s);
  ASSERT_TRUE(joined());
  EXPECT_TRUE(link_);
}

TEST_F(ConnectorTest, SaysWhomItWaitedForAndWhyInVain) {
  const Address address{.host = "127.0.0.1", .port = free_port()};
  begin_connecting_to({.address = address, .self = worker(0), .peer = server(2)}, 200ms);
  const auto start = Clock::now();
  ASSERT_TRUE(run_until(io_, [&] { return failure_.has_value(); }));
  EXPECT_LT(Clock::now() - start, patiently(1s));
  EXPECT_EQ(failure_->kind, ConnectFailure::Kind::kDeadline);
  EXPECT_THAT(failure_->reason, HasSubstr("server 2 at " + address.text()));
  EXPECT_THAT(failure_->reason, HasSubstr("Connection refused"));
}

TEST_F(ConnectorTest, TakesNoForAnAnswer) {
  objection_.reason = "the job has 4 workers";
  begin_listening({.address = {.host = "127.0.0.1"}, .self = server(0)});
  begin_connecting_to({.address = listener_->address(), .self = worker(7), .peer = server(0)}, 5s);
  const auto start = Clock::now();
  ASSERT_TRUE(run_until(io_, [&] { return failure_.has_value(); }));
  EXPECT_LT(Clock::now() - start, patiently(2s));
  EXPECT_EQ(failure_->kind, ConnectFailure::Kind::kRefused);
  EXPECT_THAT(failure_->reason, HasSubstr("server 0 at"));
  EXPECT_THAT(failure_->reason, HasSubstr("refuses worker 7: the job has 4 workers"));
}

TEST_F(ConnectorTest, ComesAgainUntilItIsWelcome) {
  objection_ = {"this process is not that far yet", /*later=*/true};
  begin_listening({.address = {.host = "127.0.0.1"}, .self = server(0)});
  begin_connecting_to({.address = listener_->address(),
                       .self = worker(1),
                       .peer = server(0),
                       .lane = 3,
                       .note = "4 processes"},
                      10s);
  ASSERT_TRUE(run_until(io_, [&] { return greetings_ >= 3; }));
  EXPECT_FALSE(failure_);
  EXPECT_THAT(connector_->obstacle(), HasSubstr("not that far yet"));
  EXPECT_GE(listener_->refusals().at("not yet"), 2);
  EXPECT_TRUE(log_.empty());  // nothing is wrong
  objection_ = {};
  ASSERT_TRUE(joined());
  ASSERT_TRUE(link_);
  EXPECT_EQ(greeted_.note, "4 processes");
  for (const Link* link : {link_.get(), accepted_.get()}) EXPECT_EQ(link->lane(), 3);
}

TEST_F(ConnectorTest, SaysNoMoreThanAGreetingHolds) {
  ConnectorOptions options{.address = {.host = "127.0.0.1", .port = free_port()},
                           .self = worker(1),
                           .peer = server(0),
                           .note = std::string(kMaxNoteBytes + 1, 'n')};
  EXPECT_THROW(begin_connecting_to(options, 1s), ConfigError);
}

TEST_F(ConnectorTest, LearnsThatItCameToTheWrongServer) {
  begin_listening({.address = {.host = "127.0.0.1"}, .self = server(1)});
  begin_connecting_to({.address = listener_->address(), .self = worker(0), .peer = server(0)}, 5s);
  ASSERT_TRUE(run_until(io_, [&] { return failure_.has_value(); }));
  EXPECT_EQ(failure_->kind, ConnectFailure::Kind::kRefused);
  EXPECT_THAT(failure_->reason, HasSubstr("looks for server 0, but this is server 1"));
}

TEST_F(ConnectorTest, OutlastsAListenerOfAnotherJobAtThePort) {
  begin_listening({.address = {.host = "127.0.0.1"}, .self = server(0, "earlier")});
  const Address address = listener_->address();
  begin_connecting_to({.address = address, .self = worker(0), .peer = server(0)}, 5s);
  ASSERT_TRUE(run_until(io_, [&] { return listener_->refusals().count("wrong job") == 1; }));
  listener_.reset();
  begin_listening({.address = address, .self = server(0)});
  ASSERT_TRUE(joined());
  EXPECT_TRUE(link_);
}

TEST_F(ConnectorTest, GivesUpSilentlyWhenItIsDestroyed) {
  begin_listening({.address = {.host = "127.0.0.1"}, .self = server(0)});
  begin_connecting_to({.address = listener_->address(), .self = worker(0), .peer = server(0)}, 1s);
  connector_.reset();
  run_for(io_, 50ms);
  EXPECT_FALSE(link_ || failure_);
}

TEST_F(ConnectorTest, FindsATlsListenerOfAllInterfaces) {
  const Credentials token{.token = std::string(64, 'c')};
  begin_listening({.address = {.host = "0.0.0.0"}, .self = server(0), .credentials = token});
  begin_connecting_to({.address = {.host = "127.0.0.1", .port = listener_->address().port},
                       .self = worker(0),
                       .peer = server(0),
                       .credentials = token},
                      5s);
  ASSERT_TRUE(joined());
  ASSERT_TRUE(link_);
  EXPECT_THAT(link_->peer_text(), HasSubstr("by TLS"));
}

TEST_F(ConnectorTest, SaysThatTheListenerWantsATokenWhenItHasNone) {
  begin_listening({.address = {.host = "0.0.0.0"},
                   .self = server(0),
                   .credentials = {.token = std::string(64, 'c')}});
  begin_connecting_to({.address = {.host = "127.0.0.1", .port = listener_->address().port},
                       .self = worker(0),
                       .peer = server(0)},
                      300ms);
  ASSERT_TRUE(run_until(io_, [&] { return failure_.has_value(); }));
  EXPECT_THAT(failure_->reason, HasSubstr("wants TLS"));
}

TEST_F(ConnectorTest, PrefersTheUnixSocketAndFallsBackToThePort) {
  ListenerOptions listening{.address = {.host = "127.0.0.1"}, .self = server(0)};
  listening.runtime_folder = folder_.path() + "/sockets";  // made by the listener
  begin_listening(listening);
  const std::string path = local_socket_path(listening.runtime_folder, listener_->address());
  EXPECT_TRUE(fs::exists(path));
  EXPECT_TRUE(is_private_folder(listening.runtime_folder));
  ConnectorOptions connecting{
      .address = listener_->address(), .self = worker(0), .peer = server(0)};
  connecting.runtime_folder = listening.runtime_folder;
  begin_connecting_to(connecting, 5s);
  ASSERT_TRUE(joined());
  ASSERT_TRUE(link_);
  EXPECT_EQ(link_->peer_text(), "server 0 by shared memory");

  fs::remove(path);
  std::ofstream(path) << "no socket";
  link_.reset();
  accepted_.reset();
  begin_connecting_to(connecting, 5s);
  ASSERT_TRUE(joined());
  ASSERT_TRUE(link_);
  EXPECT_THAT(link_->peer_text(), HasSubstr("at 127.0.0.1:"));
  listener_.reset();
  EXPECT_TRUE(fs::exists(path));  // not the listener's own any more
}

TEST_F(ConnectorTest, ReplacesTheSocketOfADeadProcessButNotOfALivingOne) {
  const std::string path = folder_.path() + "/a.sock";
  { const Descriptor dead = listen_at_path(path); }
  EXPECT_TRUE(fs::exists(path));
  begin_listening({.address = {.path = path}, .self = server(0)});
  EXPECT_THROW(listen_at_path(path), ConfigError);
  begin_connecting_to({.address = {.path = path}, .self = worker(0), .peer = server(0)}, 5s);
  ASSERT_TRUE(joined());
  EXPECT_TRUE(link_);
  listener_.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ConnectorTest, RefusesAFolderThatOthersCouldReach) {
  ListenerOptions listening{.address = {.host = "127.0.0.1"}, .self = server(0)};
  listening.runtime_folder = folder_.path() + "/open";
  fs::create_directory(listening.runtime_folder);
  ::chmod(listening.runtime_folder.c_str(), 0755);
  EXPECT_THROW(begin_listening(listening), ConfigError);
  fs::create_directory_symlink(folder_.path(), folder_.path() + "/link");
  listening.runtime_folder = folder_.path() + "/link";
  EXPECT_THROW(begin_listening(listening), ConfigError);
  listening.runtime_folder = folder_.path() + "/none/none";
  EXPECT_THROW(begin_listening(listening), ConfigError);
}

TEST_F(ConnectorTest, LetsNoOtherUserIn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can play another user";
  ::chmod(folder_.path().c_str(), 0755);
  const std::string path = folder_.path() + "/a.sock";
  begin_listening({.address = {.path = path}, .self = server(0)});
  ::chmod(path.c_str(), 0777);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(9);
    const Descriptor socket = begin_connecting(unix_address(path));
    const Bytes hello = test::hello_bytes(worker(0), server(0));
    if (!socket) ::_exit(8);
    static_cast<void>(::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL));
    pollfd wait{socket.get(), POLLIN, 0};
    ::poll(&wait, 1, 3000);
    char answer;
    ::_exit(::recv(socket.get(), &answer, 1, 0) > 0 ? 7 : 0);
  }
  EXPECT_TRUE(run_until(
      io_, [&] { return listener_->refusals().count("another user") == 1; }, 5s));
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(accepted_);
}

}  // namespace
}  // namespace cohort::network
