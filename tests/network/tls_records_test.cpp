// Records of TLS 1.3 against published examples, against damage, and against OpenSSL itself.
#include "network/tls_records.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <random>
#include <string_view>
#include <thread>

#include "core/types.h"
#include "network/certificates.h"
#include "network/link_pair.h"
#include "network/openssl_memory.h"
#include "network/secret_file.h"
#include "network/tls.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

Bytes from_digits(std::string_view digits) {
  Bytes bytes;
  unsigned value = 0;
  int count = 0;
  for (const char digit : digits) {
    if (digit == ' ') continue;
    value = value << 4 | static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    if (++count % 2 == 0) bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

Bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

template <class Array>
Array array_of(std::string_view digits) {
  const Bytes bytes = from_digits(digits);
  Array array;
  EXPECT_EQ(bytes.size(), array.size());
  std::memcpy(array.data(), bytes.data(), array.size());
  return array;
}

using MakeAead = std::function<std::unique_ptr<Aead>(Aead::Use, const Aead::Key&)>;

// The message turned in stretches of these lengths, again and again.
Bytes turned(Aead& aead, const Bytes& message, const std::vector<std::size_t>& lengths) {
  Bytes out(message.size());
  std::size_t place = 0;
  for (std::size_t i = 0; place < message.size(); ++i) {
    const std::size_t now = std::min(lengths[i % lengths.size()], message.size() - place);
    aead.turn(std::span(message).subspan(place, now), out.data() + place);
    place += now;
  }
  return out;
}

class AeadTest : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Aead> make(Aead::Use use, const Aead::Key& key) {
    return GetParam() ? make_wide_aead(use, key) : make_openssl_aead(use, key);
  }
  void SetUp() override {
    if (make(Aead::Use::kSeal, {}) == nullptr) GTEST_SKIP() << "no wide instructions here";
  }
};

INSTANTIATE_TEST_SUITE_P(All, AeadTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Wide" : "OpenSsl"; });

// Test case 4 of McGrew and Viega, The Galois/Counter Mode of Operation.
TEST_P(AeadTest, MatchesThePublishedExample) {
  const auto key = array_of<Aead::Key>("feffe9928665731c6d6a8f9467308308");
  const auto nonce = array_of<Aead::Nonce>("cafebabefacedbaddecaf888");
  const Bytes header = from_digits("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const Bytes plain = from_digits(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
  const Bytes expected = from_digits(
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
      "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091");
  const auto tag = array_of<Aead::Tag>("5bc94fbc3221a5db94fae95ae7121a47");
  for (const std::vector<std::size_t>& lengths : {std::vector<std::size_t>{60}, {1}, {7, 30, 16}}) {
    const auto sealing = make(Aead::Use::kSeal, key);
    sealing->begin(nonce, header);
    EXPECT_EQ(turned(*sealing, plain, lengths), expected);
    EXPECT_EQ(sealing->tag(), tag);
    const auto opening = make(Aead::Use::kOpen, key);
    opening->begin(nonce, header);
    EXPECT_EQ(turned(*opening, expected, lengths), plain);
    EXPECT_TRUE(opening->verify(tag));
  }
}

TEST_P(AeadTest, AgreesWithOpenSslOnLongMessagesInAnyStretches) {
  Aead::Key key = {1, 2, 3};
  const auto own = make(Aead::Use::kSeal, key);
  const auto other = make_openssl_aead(Aead::Use::kSeal, key);
  const std::vector<std::vector<std::size_t>> cuts = {{64, 16384, 1}, {16384, 1}, {333}, {5, 4096}};
  for (unsigned i = 0; i < 40; ++i) {
    const Bytes message = random_bytes(i * i * 11 + i, i);
    const Aead::Nonce nonce = {static_cast<unsigned char>(i)};
    const Bytes header = random_bytes(5, i);
    own->begin(nonce, header);
    other->begin(nonce, header);
    EXPECT_EQ(turned(*own, message, cuts[i % cuts.size()]), turned(*other, message, {1 << 20}));
    EXPECT_EQ(own->tag(), other->tag()) << i;
  }
}

TEST_P(AeadTest, NoticesAnotherHeaderNonceOrTag) {
  const Aead::Key key = {9};
  const auto sealing = make(Aead::Use::kSeal, key);
  const Bytes header = random_bytes(5, 1), message = random_bytes(100, 2);
  sealing->begin({1}, header);
  const Bytes sealed = turned(*sealing, message, {100});
  Aead::Tag tag = sealing->tag();
  const auto opens = [&](const Aead::Nonce& nonce, const Bytes& with, const Aead::Tag& given) {
    const auto opening = make(Aead::Use::kOpen, key);
    opening->begin(nonce, with);
    turned(*opening, sealed, {100});
    return opening->verify(given);
  };
  EXPECT_TRUE(opens({1}, header, tag));
  EXPECT_FALSE(opens({2}, header, tag));
  EXPECT_FALSE(opens({1}, random_bytes(5, 3), tag));
  tag[15] ^= 1;
  EXPECT_FALSE(opens({1}, header, tag));
}

TrafficSecret secret_of(unsigned char first) {
  TrafficSecret secret;
  secret.bytes[0] = first;
  return secret;
}

Bytes sealed(RecordKeys& keys, const Bytes& content, RecordType type = RecordType::kData) {
  Bytes record(content.size() + kRecordAdds);
  const std::span<const std::byte> part = content;
  EXPECT_EQ(seal_record(keys, type, {&part, 1}, record.data()), record.size());
  return record;
}

// RFC 8448, section 3: what the client sends after its handshake.
TEST(Records, MatchThePublishedHandshake) {
  TrafficSecret secret;
  secret.bytes = array_of<decltype(secret.bytes)>(
      "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5");
  Bytes content;
  for (int i = 0; i < 50; ++i) content.push_back(static_cast<std::byte>(i));
  RecordKeys keys(Aead::Use::kSeal, secret);
  EXPECT_EQ(sealed(keys, content),
            from_digits("17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea "
                        "42 f9 14 aa 66 bc ab 3f 2b 98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b "
                        "62 97 4e 1f 5a 62 92 a2 97 70 14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4"));
}

TEST(Records, AreOpenedInTheirTurnAlone) {
  RecordKeys sealing(Aead::Use::kSeal, secret_of(1)), opening(Aead::Use::kOpen, secret_of(1));
  const Bytes first = random_bytes(100, 1), second = random_bytes(kRecordContent, 2);
  const Bytes one = sealed(sealing, first), two = sealed(sealing, second);
  Bytes place(kRecordContent), further(kRecordContent);
  EXPECT_EQ(open_record(opening, one, place, {}), RecordType::kData);
  EXPECT_EQ(Bytes(place.begin(), place.begin() + 100), first);
  // In two places.
  EXPECT_EQ(open_record(opening, two, std::span(place).first(77), further), RecordType::kData);
  EXPECT_EQ(Bytes(further.begin(), further.begin() + 1000),
            Bytes(second.begin() + 77, second.begin() + 1077));
  EXPECT_FALSE(open_record(opening, two, place, {}));  // once more
  RecordKeys late(Aead::Use::kOpen, secret_of(1));
  EXPECT_FALSE(open_record(late, two, place, {}));  // before its turn
}

TEST(Records, AreRefusedWhenAnyBitOfThemChanges) {
  RecordKeys sealing(Aead::Use::kSeal, secret_of(1));
  const Bytes good = sealed(sealing, random_bytes(40, 1));
  Bytes place(100);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    RecordKeys opening(Aead::Use::kOpen, secret_of(1));
    EXPECT_FALSE(open_record(opening, bad, place, {})) << "bit " << bit;
  }
}

TEST(Records, HaveLengthsThatCanBe) {
  const auto length = [](int type, int version, std::size_t sealed) {
    const std::array<std::byte, kRecordHeader> header = {
        static_cast<std::byte>(type), std::byte{3}, static_cast<std::byte>(version),
        static_cast<std::byte>(sealed >> 8), static_cast<std::byte>(sealed)};
    return record_length(header);
  };
  EXPECT_EQ(length(23, 3, 17), kRecordAdds);
  EXPECT_EQ(length(23, 3, kRecordContent + 17), kLongestRecord);
  EXPECT_EQ(length(23, 3, 16), std::nullopt);
  EXPECT_EQ(length(23, 3, kRecordContent + 18), std::nullopt);
  EXPECT_EQ(length(23, 3, 65535), std::nullopt);
  EXPECT_EQ(length(22, 3, 100), std::nullopt);
  EXPECT_EQ(length(23, 1, 100), std::nullopt);
}

TEST(Records, GoOnWithTheNextSecret) {
  RecordKeys sealing(Aead::Use::kSeal, secret_of(1)), opening(Aead::Use::kOpen, secret_of(1));
  Bytes place(100);
  sealed(sealing, random_bytes(10, 1));
  sealing.renew();
  EXPECT_EQ(sealing.records(), 0);
  const Bytes record = sealed(sealing, random_bytes(10, 2));
  EXPECT_FALSE(open_record(opening, record, place, {}));
  opening.renew();
  EXPECT_EQ(open_record(opening, record, place, {}), RecordType::kData);
}

// A stream of ours and OpenSSL at the other end, with certificates of one authority.
class RecordsWithOpenSsl : public ::testing::TestWithParam<bool> {
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
    stream_ = context.make_stream(ends_[0]);
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

INSTANTIATE_TEST_SUITE_P(All, RecordsWithOpenSsl, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Listens" : "Connects"; });

TEST_P(RecordsWithOpenSsl, AreUnderstoodBothWays) { expect_both_understand(1); }

TEST_P(RecordsWithOpenSsl, GoOnWithNewKeysWhenAskedFor) {
  expect_both_understand(1);
  for (const int kind : {SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED}) {
    ASSERT_EQ(SSL_key_update(peer_.get(), kind), 1);
    expect_both_understand(static_cast<unsigned>(kind) + 5);
  }
}

// Takes a quarter of a minute: for whoever changes how records are counted.
TEST_P(RecordsWithOpenSsl, DISABLED_GetNewKeysByThemselvesInTime) {
  const Bytes byte = random_bytes(1, 1);
  std::vector<iovec> pieces(512, {const_cast<std::byte*>(byte.data()), 1});
  Bytes heard(1 << 16);
  std::uint64_t sent = 0, got = 0;
  const std::uint64_t enough = 8 * (kRecordsOfAKey + 1000);  // eight pieces a record
  while (sent < enough || got < sent) {
    const IoResult wrote = stream_->write(sent < enough ? pieces : std::vector<iovec>());
    ASSERT_NE(wrote.status, IoResult::Status::kFailed) << stream_->failure();
    sent += wrote.bytes;
    std::size_t count = 0;
    while (SSL_read_ex(peer_.get(), heard.data(), heard.size(), &count) == 1) got += count;
    ASSERT_EQ(SSL_get_error(peer_.get(), 0), SSL_ERROR_WANT_READ);
  }
  expect_both_understand(9);
}

TEST_P(RecordsWithOpenSsl, DoNotKeepThisEndBusyWithNothing) {
  Bytes place(10);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(SSL_key_update(peer_.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(peer_.get()), 1);
  }
  EXPECT_EQ(stream_->read(place, {}).status, IoResult::Status::kWantRead);
  expect_both_understand(3);
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(SSL_key_update(peer_.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(peer_.get()), 1);
  }
  EXPECT_EQ(stream_->read(place, {}).status, IoResult::Status::kFailed);
  EXPECT_THAT(stream_->failure(), HasSubstr("hold nothing"));
}

TEST_P(RecordsWithOpenSsl, EndWithItsFarewell) {
  SSL_shutdown(peer_.get());
  Bytes place(10);
  EXPECT_EQ(stream_->read(place, {}).status, IoResult::Status::kEnd);
}

TEST_P(RecordsWithOpenSsl, AreNotTakenFromWhoDoesNotKnowTheKeys) {
  Bytes bytes = random_bytes(100, 3);
  for (std::size_t i = 0; i < kRecordHeader; ++i) {
    bytes[i] = static_cast<std::byte>(std::array<int, 5>{23, 3, 3, 0, 95}[i]);
  }
  ASSERT_EQ(::send(ends_[1], bytes.data(), bytes.size(), 0), 100);
  Bytes place(200);
  EXPECT_EQ(stream_->read(place, {}).status, IoResult::Status::kFailed);
  EXPECT_THAT(stream_->failure(), HasSubstr("changed on the way"));
  EXPECT_TRUE(stream_->distrusted());
}

TEST_P(RecordsWithOpenSsl, AreNotLookedForInOtherBytes) {
  ASSERT_EQ(::send(ends_[1], "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  Bytes place(200);
  EXPECT_EQ(stream_->read(place, {}).status, IoResult::Status::kFailed);
  EXPECT_THAT(stream_->failure(), HasSubstr("no record"));
}

}  // namespace
}  // namespace cohort
