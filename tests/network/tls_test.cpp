// Who gets in with which token and which certificate.
#include "network/tls.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "network/certificates.h"
#include "network/link_pair.h"
#include "network/raw_peer.h"
#include "network/secret_file.h"
#include "network/sockets.h"

namespace cohort::network {
namespace {

using test::hello_bytes;
using test::RawPeer;
using test::run_until;
using test::server;
using test::worker;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

const std::string kToken(64, 'a');

Validity around_now(std::chrono::hours from, std::chrono::hours until) {
  const auto now = std::chrono::system_clock::now();
  return {now + from, now + until};
}

class TlsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    authority_ = new Authority(job_id_of("test"), around_now(-2h, 2h));
  }
  static void TearDownTestSuite() { delete authority_; }

  // A folder with a certificate of `issuer`, and the good authority to be trusted.
  fs::path certificate(const std::string& name, const Identity& identity,
                       const Authority& issuer = *authority_,
                       const Validity& validity = around_now(-1h, 1h)) {
    const fs::path place = fs::path(folder_.path()) / name;
    fs::create_directory(place);
    const auto issued = issuer.issue(identity, validity);
    write_secret_file(place / "authority.pem", authority_->certificate());
    write_secret_file(place / "certificate.pem", issued.certificate);
    write_secret_file(place / "key.pem", issued.key);
    return place;
  }

  void start(const Credentials& credentials) {
    ListenerOptions options{.address = {.host = "127.0.0.1"}, .self = server(0)};
    options.credentials = credentials;
    options.credentials.always = true;
    listener_ = listen(io_, options,
                       {.admit = {},
                        .accepted = [this](std::unique_ptr<Link>) { ++accepted_; },
                        .log = [this](const std::string& line) { log_.push_back(line); }});
  }

  struct Outcome {
    bool welcomed = false;
    std::string refused;    // what the listener said by a frame
    std::string obstacle;   // what went wrong before that
    std::size_t heard = 0;  // bytes inside TLS
  };
  // Comes with these credentials, says that it is `self` and looks for server 0.
  Outcome come(const Credentials& credentials, const Identity& owner, const Identity& self) {
    RawPeer peer(listener_->address().port);
    ::fcntl(peer.socket(), F_SETFL, O_NONBLOCK);
    const TlsContext context(credentials, owner, TlsContext::End::kConnects);
    const auto stream = context.make_stream(peer.socket());
    Outcome outcome;
    const auto over = [&](const IoResult& result) {
      if (result.status == IoResult::Status::kEnd) outcome.obstacle = "closed";
      if (result.status == IoResult::Status::kFailed) outcome.obstacle = stream->failure();
      return !outcome.obstacle.empty();
    };
    bool secure = false;
    run_until(io_, [&] {
      const IoResult result = stream->handshake();
      secure = result.status == IoResult::Status::kDone;
      return secure || over(result);
    });
    if (secure) {
      const Bytes hello = hello_bytes(self, {self.job, Role::kServer, 0});
      const iovec piece{const_cast<std::byte*>(hello.data()), hello.size()};
      over(stream->write({&piece, 1}));
    }
    outcome.obstacle.clear();
    Bytes answer(1000);
    run_until(io_, [&] {
      const IoResult result = stream->read(std::span(answer).subspan(outcome.heard), {});
      outcome.heard += result.bytes;
      return over(result) || outcome.heard >= kFrameHeaderBytes + 1;
    });
    if (outcome.heard > kFrameHeaderBytes) {
      const auto verdict =
          judge_answer(std::span(answer).first<kFrameHeaderBytes>(),
                       std::span(answer).first(outcome.heard).subspan(kFrameHeaderBytes),
                       {.self = self, .peer = server(0), .silence = 3s}, std::nullopt);
      outcome.welcomed = std::holds_alternative<Greeting>(verdict);
      if (const auto* refused = std::get_if<Refused>(&verdict)) outcome.refused = refused->reason;
    }
    run_until(
        io_, [&] { return accepted_ > 0 || !listener_->refusals().empty(); }, 2s);
    return outcome;
  }

  void expect_kept_out(const Credentials& credentials, const Identity& owner,
                       const std::string& why) {
    log_.clear();
    const Outcome outcome = come(credentials, owner, {owner.job, Role::kWorker, 1});
    EXPECT_FALSE(outcome.welcomed) << why;
    EXPECT_EQ(outcome.heard, 0) << why;
    EXPECT_FALSE(outcome.obstacle.empty());
    EXPECT_THAT(listener_->refusals(), Contains(::testing::Pair("TLS handshake failed", 1)));
    EXPECT_THAT(log_, Contains(HasSubstr(why)));
    EXPECT_EQ(accepted_, 0);
  }

  static Authority* authority_;
  test::PrivateFolder folder_;
  boost::asio::io_context io_{1};
  std::unique_ptr<Listener> listener_;
  std::vector<std::string> log_;
  int accepted_ = 0;
};

Authority* TlsTest::authority_ = nullptr;

TEST_F(TlsTest, TheRightTokenAndJobGetIn) {
  start({.token = kToken});
  EXPECT_TRUE(come({.token = kToken}, worker(1), worker(1)).welcomed);
  EXPECT_EQ(accepted_, 1);
}

TEST_F(TlsTest, AnotherTokenIsKeptOut) {
  start({.token = kToken});
  expect_kept_out({.token = std::string(64, 'b')}, worker(1), "it has another token");
}

TEST_F(TlsTest, TheTokenIsOfNoUseForAnotherJob) {
  start({.token = kToken});
  expect_kept_out({.token = kToken}, worker(1, "other"), "TLS");
}

TEST_F(TlsTest, ACertificateIsNoToken) {
  start({.token = kToken});
  expect_kept_out({.tls_dir = certificate("worker", worker(1))}, worker(1), "TLS");
}

TEST_F(TlsTest, WhoSpeaksPlainlyHearsNothing) {
  start({.token = kToken});
  RawPeer peer(listener_->address().port);
  peer.write(hello_bytes(worker(1), server(0)));
  ASSERT_TRUE(run_until(io_, [&] { return peer.closed(); }));
  EXPECT_TRUE(peer.received().empty());
  EXPECT_THAT(listener_->refusals(), Contains(::testing::Pair("TLS handshake failed", 1)));
  EXPECT_EQ(accepted_, 0);
}

TEST_F(TlsTest, TooMuchBeforeTheHandshakeIsCutShort) {
  start({.token = kToken});
  RawPeer peer(listener_->address().port);
  // Records of a greeting that never ends.
  Bytes record(5 + 4096, std::byte{0});
  const unsigned char begin[] = {22, 3, 1, 16, 0, 1, 1, 0, 0};
  std::copy_n(reinterpret_cast<const std::byte*>(begin), sizeof begin, record.begin());
  for (int i = 0; i < 16; ++i) {
    peer.write(record);
    record[5] = record[6] = std::byte{0};
  }
  ASSERT_TRUE(run_until(
      io_, [&] { return peer.closed(); }, 2s));
  EXPECT_LE(peer.received().size(), 7);
  EXPECT_THAT(listener_->refusals(), Contains(::testing::Pair("TLS handshake failed", 1)));
}

TEST_F(TlsTest, TheRightCertificateGetsIn) {
  start({.tls_dir = certificate("server", server(0))});
  EXPECT_TRUE(come({.tls_dir = certificate("worker", worker(1))}, worker(1), worker(1)).welcomed);
  EXPECT_EQ(accepted_, 1);
}

TEST_F(TlsTest, AnotherRoleOrRankThanTheCertificatesIsRefusedAndTold) {
  start({.tls_dir = certificate("server", server(0))});
  const fs::path mine = certificate("worker", worker(1));
  for (const Identity& claimed : {worker(2), server(1)}) {
    const Outcome outcome = come({.tls_dir = mine}, worker(1), claimed);
    EXPECT_THAT(outcome.refused, HasSubstr("its certificate is that of worker 1"));
  }
  EXPECT_THAT(listener_->refusals(), Contains(::testing::Pair("wrong certificate", 2)));
  EXPECT_EQ(accepted_, 0);
}

TEST_F(TlsTest, AnExpiredCertificateIsKeptOut) {
  start({.tls_dir = certificate("server", server(0))});
  expect_kept_out({.tls_dir = certificate("worker", worker(1), *authority_, around_now(-2h, -1h))},
                  worker(1), "certificate has expired");
}

TEST_F(TlsTest, ACertificateOfTheFutureIsKeptOut) {
  start({.tls_dir = certificate("server", server(0))});
  expect_kept_out({.tls_dir = certificate("worker", worker(1), *authority_, around_now(1h, 2h))},
                  worker(1), "not yet valid");
}

TEST_F(TlsTest, ACertificateOfAForeignAuthorityIsKeptOut) {
  start({.tls_dir = certificate("server", server(0))});
  const Authority foreign(job_id_of("test"), around_now(-1h, 1h));
  expect_kept_out({.tls_dir = certificate("worker", worker(1), foreign)}, worker(1),
                  "its certificate is not accepted");
}

TEST_F(TlsTest, ACertificateOfAnotherJobIsKeptOut) {
  start({.tls_dir = certificate("server", server(0))});
  expect_kept_out({.tls_dir = certificate("worker", worker(1, "other"))}, worker(1, "other"),
                  "its certificate is of another job");
}

TEST_F(TlsTest, ATokenIsNoCertificate) {
  start({.tls_dir = certificate("server", server(0))});
  expect_kept_out({.token = kToken}, worker(1), "TLS");
}

TEST_F(TlsTest, AnImpostorIsNotSpokenTo) {
  // Worker 2, with a good certificate, plays the server.
  Address address{.host = "127.0.0.1"};
  const Descriptor door = listen_at(address);
  const TlsContext context({.tls_dir = certificate("worker-2", worker(2))}, worker(2),
                           TlsContext::End::kListens);
  std::unique_ptr<Link> mine;
  std::optional<ConnectFailure> failure;
  const auto connector = connect(
      io_,
      {.address = address,
       .self = worker(1),
       .peer = server(0),
       .credentials = {.tls_dir = certificate("worker-1", worker(1)), .always = true}},
      deadline_in(1s), [&](std::unique_ptr<Link> link) { mine = std::move(link); },
      [&](const ConnectFailure& why) { failure = why; });
  struct Victim {
    Descriptor socket;
    std::unique_ptr<Stream> stream;
    std::size_t heard = 0;
    bool answered = false;
  };
  std::vector<Victim> victims;
  std::array<std::byte, kFrameHeaderBytes + kGreetingBytes> hello;
  const auto play = [&] {
    if (Descriptor socket(::accept4(door.get(), nullptr, nullptr, SOCK_NONBLOCK)); socket) {
      auto stream = context.make_stream(socket.get());
      victims.push_back({std::move(socket), std::move(stream)});
    }
    for (Victim& victim : victims) {
      if (victim.answered || victim.stream->handshake().status != IoResult::Status::kDone) continue;
      const auto result = victim.stream->read(std::span(hello).subspan(victim.heard), {});
      victim.heard += result.bytes;
      if (victim.heard < hello.size()) continue;
      victim.answered = true;
      const auto welcome = encode_greeting(
          kWelcome, {.self = server(0), .peer = worker(1), .shared_memory = false, .silence = 3s});
      const iovec piece{const_cast<std::byte*>(welcome.data()), welcome.size()};
      victim.stream->write({&piece, 1});
    }
    return mine || failure;
  };
  EXPECT_TRUE(run_until(io_, play, 3s));
  EXPECT_EQ(mine, nullptr);
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->reason, HasSubstr("its certificate is that of worker 2"));
}

TEST_F(TlsTest, FilesThatCannotServeAreNamedAtOnce) {
  const auto message = [&](const fs::path& folder, const Identity& self) {
    try {
      const TlsContext context({.tls_dir = folder}, self, TlsContext::End::kListens);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const fs::path good = certificate("good", worker(1));
  EXPECT_EQ(message(good, worker(1)), "");
  EXPECT_THAT(message(good, worker(2)), HasSubstr("it is that of worker 1, and this is worker 2"));
  EXPECT_THAT(message(good, worker(1, "other")), HasSubstr("it is of another job"));
  EXPECT_THAT(message(folder_.path() + "/none", worker(1)), HasSubstr("key.pem"));
  const fs::path other = certificate("other", worker(1));
  fs::copy_file(other / "key.pem", good / "key.pem", fs::copy_options::overwrite_existing);
  EXPECT_THAT(message(good, worker(1)), HasSubstr("key.pem cannot be used"));
  fs::permissions(other / "key.pem", fs::perms::group_read, fs::perm_options::add);
  EXPECT_THAT(message(other, worker(1)), HasSubstr("chmod 600"));
  fs::remove(other / "authority.pem");
  fs::permissions(other / "key.pem", fs::perms::group_read, fs::perm_options::remove);
  EXPECT_THAT(message(other, worker(1)), HasSubstr("authority.pem"));
}

}  // namespace
}  // namespace cohort::network
