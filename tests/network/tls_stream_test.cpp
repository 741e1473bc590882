// A stream of TLS against OpenSSL itself at the other end: what is understood, and what ends it.
#include "network/tls_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>

#include "core/types.h"
#include "network/certificates.h"
#include "network/link_pair.h"
#include "network/openssl_memory.h"
#include "network/secret_file.h"
#include "network/tls.h"

namespace cohort::network {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::uint64_t kRecordsInThisTest = 200;  // of a key

Bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

// A stream of ours and OpenSSL at the other end, with certificates of one authority.
class TlsStreamTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    for (const int end : ends_) ::fcntl(end, F_SETFL, O_NONBLOCK);
    const auto now = std::chrono::system_clock::now();
    const Authority authority(job_id_of("test"), {now - 2h, now + 2h});
    const Identity self = test::server(0), peer = test::worker(1);
    const bool listens = GetParam();
    const fs::path own = write(authority, "own", self, {now - 1h, now + 1h});
    const fs::path other = write(authority, "other", peer, {now - 1h, now + 1h});
    const TlsContext context({.tls_dir = own.string()}, self,
                             listens ? TlsContext::End::kListens : TlsContext::End::kConnects);
    stream_ = context.make_stream(ends_[0], kRecordsInThisTest);
    context_.reset(SSL_CTX_new(TLS_method()));
    ASSERT_EQ(SSL_CTX_load_verify_file(context_.get(), (other / "authority.pem").c_str()), 1);
    ASSERT_EQ(SSL_CTX_use_certificate_file(context_.get(), (other / "certificate.pem").c_str(),
                                           SSL_FILETYPE_PEM),
              1);
    ASSERT_EQ(
        SSL_CTX_use_PrivateKey_file(context_.get(), (other / "key.pem").c_str(), SSL_FILETYPE_PEM),
        1);
    SSL_CTX_set_num_tickets(context_.get(), 0);
    SSL_CTX_set_mode(context_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    peer_.reset(SSL_new(context_.get()));
    SSL_set_fd(peer_.get(), ends_[1]);
    listens ? SSL_set_connect_state(peer_.get()) : SSL_set_accept_state(peer_.get());
    const Deadline deadline = deadline_in(10s);
    bool done = false;
    while ((!done || !SSL_is_init_finished(peer_.get())) && Clock::now() < deadline) {
      if (!done) done = stream_->handshake().status == IoResult::Status::kDone;
      SSL_do_handshake(peer_.get());
    }
    ASSERT_TRUE(done) << stream_->failure();
  }
  void TearDown() override {
    for (const int end : ends_) ::close(end);
  }

  fs::path write(const Authority& authority, const std::string& name, const Identity& identity,
                 const Validity& validity) {
    const fs::path place = fs::path(folder_.path()) / name;
    fs::create_directory(place);
    const auto issued = authority.issue(identity, validity);
    write_secret_file(place / "authority.pem", authority.certificate());
    write_secret_file(place / "certificate.pem", issued.certificate);
    write_secret_file(place / "key.pem", issued.key);
    return place;
  }

  // Both send at once, in pieces of many lengths. What arrives at our end, then at the other.
  std::pair<Bytes, Bytes> exchange(const Bytes& ours, const Bytes& theirs) {
    Bytes here(theirs.size()), there(ours.size());
    std::size_t sent = 0, got = 0, peer_sent = 0, peer_got = 0;
    std::mt19937 random(7);
    const auto some = [&](std::size_t most) {
      return std::min<std::size_t>(most,
                                   random() % 3 == 0 ? random() % 200 + 1 : random() % 60000 + 1);
    };
    const Deadline deadline = deadline_in(30s);
    while ((got < here.size() || peer_got < there.size() || stream_->unsent() > 0) &&
           Clock::now() < deadline) {
      auto* const from = const_cast<std::byte*>(ours.data()) + sent;
      const std::size_t piece = some(ours.size() - sent);
      const std::size_t next = some(ours.size() - sent - piece);
      const iovec pieces[] = {{from, piece}, {from + piece, next}};
      const IoResult wrote = stream_->write(pieces);
      if (wrote.status == IoResult::Status::kDone) sent += wrote.bytes;
      const std::size_t room = some(here.size() - got), more = some(here.size() - got - room);
      if (room > 0) {
        const auto place = std::span(here).subspan(got);
        const IoResult read = stream_->read(place.first(room), place.subspan(room, more));
        if (read.status == IoResult::Status::kFailed) ADD_FAILURE() << stream_->failure();
        if (read.status != IoResult::Status::kDone && read.status != IoResult::Status::kWantRead) {
          break;
        }
        got += read.bytes;
      }
      std::size_t count = 0;
      if (peer_sent < theirs.size() &&
          SSL_write_ex(peer_.get(), theirs.data() + peer_sent, theirs.size() - peer_sent, &count)) {
        peer_sent += count;
      }
      count = 0;
      if (peer_got < there.size() &&
          SSL_read_ex(peer_.get(), there.data() + peer_got, there.size() - peer_got, &count)) {
        peer_got += count;
      }
    }
    here.resize(got);
    there.resize(peer_got);
    return {here, there};
  }

  void expect_both_understand(unsigned seed) {
    const Bytes ours = random_bytes(1 << 20, seed), theirs = random_bytes((1 << 20) + 13, seed + 1);
    const auto [here, there] = exchange(ours, theirs);
    EXPECT_TRUE(here == theirs) << here.size() << " bytes";
    EXPECT_TRUE(there == ours) << there.size() << " bytes";
  }

  test::PrivateFolder folder_;
  int ends_[2] = {-1, -1};
  OpenSslContext context_;
  OpenSslConnection peer_;
  std::unique_ptr<Stream> stream_;
};

INSTANTIATE_TEST_SUITE_P(All, TlsStreamTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Listens" : "Connects"; });

TEST_P(TlsStreamTest, IsUnderstoodBothWays) { expect_both_understand(1); }

TEST_P(TlsStreamTest, GoesOnWithNewKeysWhenAskedFor) {
  expect_both_understand(1);
  for (const int kind : {SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED}) {
    ASSERT_EQ(SSL_key_update(peer_.get(), kind), 1);
    expect_both_understand(static_cast<unsigned>(kind) + 5);
  }
}

TEST_P(TlsStreamTest, TakesANewKeyByItselfInTime) {
  int updates = 0;
  SSL_set_msg_callback_arg(peer_.get(), &updates);
  SSL_set_msg_callback(peer_.get(), [](int sent, int, int type, const void* bytes, std::size_t size,
                                       SSL*, void* count) {
    const bool update = type == SSL3_RT_HANDSHAKE && size > 0 &&
                        *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE;
    if (update && sent == 0) ++*static_cast<int*>(count);
  });
  // At least so many records, of 16 KiB at most.
  const std::size_t enough = 3 * kRecordsInThisTest * SSL3_RT_MAX_PLAIN_LENGTH;
  const Bytes ours = random_bytes(enough, 9);
  EXPECT_TRUE(exchange(ours, {}).second == ours);
  EXPECT_GE(updates, 3);
}

TEST_P(TlsStreamTest, EndsWithTheOthersFarewell) {
  SSL_shutdown(peer_.get());
  Bytes place(10);
  EXPECT_EQ(stream_->read(place, {}).status, IoResult::Status::kEnd);
}

TEST_P(TlsStreamTest, EndsWhenARecordWasChangedOnTheWay) {
  const Bytes ours = random_bytes(100, 3);
  std::size_t sent = 0;
  ASSERT_EQ(SSL_write_ex(peer_.get(), ours.data(), ours.size(), &sent), 1);
  Bytes record(200);
  const ssize_t length = ::recv(ends_[0], record.data(), record.size(), 0);
  ASSERT_GT(length, 100);
  record[50] ^= std::byte{1};
  // What it reads at its end is the other end's to write.
  ASSERT_EQ(::send(ends_[1], record.data(), static_cast<std::size_t>(length), 0), length);
  Bytes place(200);
  EXPECT_EQ(stream_->read(place, {}).status, IoResult::Status::kFailed);
  EXPECT_THAT(stream_->failure(), HasSubstr("bad record mac"));
  EXPECT_TRUE(stream_->distrusted());
  // The other end is told.
  EXPECT_NE(SSL_read_ex(peer_.get(), place.data(), place.size(), &sent), 1);
  EXPECT_EQ(ERR_GET_REASON(ERR_peek_error()), SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
  ERR_clear_error();
}

TEST_P(TlsStreamTest, EndsWhenARecordIsRepeated) {
  const Bytes ours = random_bytes(100, 3);
  std::size_t sent = 0;
  ASSERT_EQ(SSL_write_ex(peer_.get(), ours.data(), ours.size(), &sent), 1);
  Bytes record(200);
  const ssize_t length = ::recv(ends_[0], record.data(), record.size(), 0);
  for (int time = 0; time < 2; ++time) {
    ASSERT_EQ(::send(ends_[1], record.data(), static_cast<std::size_t>(length), 0), length);
  }
  Bytes place(200);
  EXPECT_EQ(stream_->read(std::span(place).first(100), {}).bytes, 100);
  EXPECT_EQ(stream_->read(place, {}).status, IoResult::Status::kFailed);
  EXPECT_TRUE(stream_->distrusted());
}

TEST_P(TlsStreamTest, EndsWhenOtherBytesCome) {
  ASSERT_EQ(::send(ends_[1], "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  Bytes place(200);
  EXPECT_EQ(stream_->read(place, {}).status, IoResult::Status::kFailed);
  EXPECT_THAT(stream_->failure(), HasSubstr("TLS: "));
}

// A peer that takes nothing: what is sealed waits, and no more than a batch of it.
TEST_P(TlsStreamTest, SealsNoMoreThanABatchAheadOfTheSystem) {
  const Bytes ours = random_bytes(1 << 20, 5);
  const iovec piece{const_cast<std::byte*>(ours.data()), ours.size()};
  while (stream_->write({&piece, 1}).status == IoResult::Status::kDone) continue;
  EXPECT_GT(stream_->unsent(), 0);
  EXPECT_LE(stream_->unsent(), kTlsBatch + kTlsBatch / 64);
}

}  // namespace
}  // namespace cohort::network
