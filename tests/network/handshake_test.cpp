#include "network/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "network/link_pair.h"
#include "network/raw_peer.h"

namespace cohort::network {
namespace {

using test::frame_bytes;
using test::server;
using test::worker;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

Greeting hello() {
  return {.self = worker(3),
          .peer = server(0),
          .shared_memory = true,
          .silence = 1500ms,
          .lane = 5,
          .note = "4 processes"};
}

std::variant<Greeting, Refusal> judge(const Bytes& frame,
                                      std::optional<Identity> certified = std::nullopt) {
  return judge_hello(std::span(frame).first<kFrameHeaderBytes>(),
                     std::span(frame).subspan(kFrameHeaderBytes), server(0), certified);
}

Bytes payload_of(const Greeting& greeting) {
  const Bytes frame = encode_greeting(kHello, greeting);
  return {frame.begin() + kFrameHeaderBytes,
          frame.begin() + kFrameHeaderBytes + kGreetingBytes + greeting.note.size()};
}

Refusal refusal_of_hello(const Bytes& frame, std::optional<Identity> certified = std::nullopt) {
  const auto verdict = judge(frame, certified);
  const auto* refusal = std::get_if<Refusal>(&verdict);
  return refusal != nullptr ? *refusal : Refusal{"none", "", false};
}

TEST(Handshake, WelcomesWhoIsRight) {
  const auto frame = encode_greeting(kHello, hello());
  for (const auto& certified : {std::optional<Identity>(), std::optional(worker(3))}) {
    const auto verdict = judge(frame, certified);
    ASSERT_TRUE(std::holds_alternative<Greeting>(verdict));
    EXPECT_EQ(std::get<Greeting>(verdict), hello());
  }
}

TEST(Handshake, TellsNothingToWhoDoesNotKnowTheJob) {
  Greeting foreign = hello();
  foreign.self = worker(3, "other");
  foreign.peer = server(0, "other");
  const Refusal refusal = refusal_of_hello(encode_greeting(kHello, foreign));
  EXPECT_EQ(refusal.kind, "wrong job");
  EXPECT_FALSE(refusal.tell);

  Bytes random = test::some_bytes(kFrameHeaderBytes + kGreetingBytes);
  EXPECT_EQ(refusal_of_hello(random).kind, "not a cohort frame");
  EXPECT_FALSE(refusal_of_hello(random).tell);
  random[0] = std::byte{22};
  random[1] = std::byte{3};
  EXPECT_THAT(refusal_of_hello(random).detail, HasSubstr("TLS"));

  // Of another job and a newer version: the job comes first.
  FrameHeader header{.type = kHello, .job = job_id_of("other")};
  const Refusal newer = refusal_of_hello(frame_bytes(header, payload_of(hello()), 9));
  EXPECT_EQ(newer.kind, "wrong job");
  EXPECT_FALSE(newer.tell);
}

TEST(Handshake, TellsAMemberOfTheJobWhatIsWrong) {
  const FrameHeader header{.type = kHello, .job = job_id_of("test")};
  const Refusal newer = refusal_of_hello(frame_bytes(header, payload_of(hello()), 8));
  EXPECT_EQ(newer.kind, "wrong version");
  EXPECT_TRUE(newer.tell);
  EXPECT_THAT(newer.detail, HasSubstr("version 8"));

  Greeting other = hello();
  other.peer = server(1);
  const Refusal address = refusal_of_hello(encode_greeting(kHello, other));
  EXPECT_EQ(address.kind, "wrong address");
  EXPECT_TRUE(address.tell);
  EXPECT_THAT(address.detail, HasSubstr("worker 3 looks for server 1, but this is server 0"));

  const auto frame = encode_greeting(kHello, hello());
  for (const Identity& certified : {worker(2), server(3), worker(3, "other")}) {
    EXPECT_EQ(refusal_of_hello(frame, certified).kind, "wrong certificate");
  }
}

TEST(Handshake, WhoLooksForAnyOfARoleTakesWhoIsThere) {
  Greeting any = hello();
  any.peer.rank = kAnyRank;
  const auto verdict = judge(encode_greeting(kHello, any));
  ASSERT_TRUE(std::holds_alternative<Greeting>(verdict));
  const auto reply = [&](const Identity& self, std::optional<Identity> certified) {
    const auto frame = encode_greeting(
        kWelcome, {.self = self, .peer = worker(3), .shared_memory = true, .silence = 2s});
    return judge_answer(std::span(frame).first<kFrameHeaderBytes>(),
                        std::span(frame).subspan(kFrameHeaderBytes), any, certified);
  };
  for (const Rank rank : {0, 7}) {
    EXPECT_TRUE(std::holds_alternative<Greeting>(reply(server(rank), std::nullopt)));
    EXPECT_TRUE(std::holds_alternative<Greeting>(reply(server(rank), server(rank))));
  }
  // Of another role, or with a certificate that is another's.
  EXPECT_TRUE(std::holds_alternative<Nonsense>(reply(worker(0), std::nullopt)));
  EXPECT_TRUE(std::holds_alternative<Nonsense>(reply(server(0), server(1))));
  EXPECT_TRUE(std::holds_alternative<Nonsense>(reply(server(0), worker(0))));

  Greeting nobody = hello();
  nobody.self.rank = kAnyRank;
  EXPECT_EQ(refusal_of_hello(encode_greeting(kHello, nobody)).kind, "damaged hello");
}

TEST(Handshake, RefusesGreetingsThatMakeNoSense) {
  const FrameHeader header{.type = kHello, .job = job_id_of("test")};
  const auto kind_with = [&](std::size_t at, unsigned value) {
    Bytes payload = payload_of(hello());
    payload[at] = static_cast<std::byte>(value);
    return refusal_of_hello(frame_bytes(header, payload)).kind;
  };
  EXPECT_EQ(kind_with(0, 1), "none");
  EXPECT_EQ(kind_with(0, 0), "damaged hello");  // role
  EXPECT_EQ(kind_with(0, 3), "damaged hello");
  EXPECT_EQ(kind_with(1, 7), "damaged hello");     // wanted role
  EXPECT_EQ(kind_with(2, 2), "damaged hello");     // flags
  EXPECT_EQ(kind_with(7, 0x80), "damaged hello");  // rank
  EXPECT_EQ(kind_with(11, 0xff), "damaged hello");
  Greeting silent = hello();
  silent.silence = 0ms;
  EXPECT_EQ(refusal_of_hello(encode_greeting(kHello, silent)).kind, "damaged hello");

  EXPECT_EQ(kind_with(18, 1), "damaged hello");  // what is to be zero
  EXPECT_EQ(kind_with(63, 1), "damaged hello");
  EXPECT_EQ(kind_with(64, 1), "none");  // the note is its user's

  Bytes damaged = encode_greeting(kHello, hello());
  damaged[kFrameHeaderBytes + kGreetingBytes] ^= std::byte{1};
  EXPECT_EQ(refusal_of_hello(damaged).kind, "damaged hello");  // the payload's checksum
  EXPECT_EQ(refusal_of_hello(encode_greeting(kWelcome, hello())).kind, "damaged hello");

  for (const std::size_t size : {std::size_t{0}, kGreetingBytes - 1,
                                 kGreetingBytes + kMaxNoteBytes + 1, std::size_t{kMaxPayload}}) {
    const Bytes frame = frame_bytes(header, Bytes(size));
    const auto verdict = judge_header(std::span(frame).first<kFrameHeaderBytes>(), header.job);
    ASSERT_TRUE(std::holds_alternative<Refusal>(verdict)) << size;
    EXPECT_EQ(std::get<Refusal>(verdict).kind, "damaged hello");
  }
}

TEST(Handshake, CarriesANoteOfAnyLengthUpToTheBound) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{64}, kMaxNoteBytes}) {
    Greeting greeting = hello();
    greeting.note = std::string(size, 'n');
    const Bytes frame = encode_greeting(kHello, greeting);
    EXPECT_EQ(frame.size() % kFrameHeaderBytes, 0) << size;
    const auto length =
        judge_header(std::span(frame).first<kFrameHeaderBytes>(), greeting.self.job);
    EXPECT_EQ(std::get<std::size_t>(length), kGreetingBytes + size);
    EXPECT_EQ(std::get<Greeting>(judge(frame)), greeting);
  }
}

TEST(Handshake, ARefusalSaysWhetherItIsForNow) {
  for (const bool later : {false, true}) {
    const Bytes frame = encode_refusal(job_id_of("test"), "not yet", later);
    const auto verdict =
        judge_answer(std::span(frame).first<kFrameHeaderBytes>(),
                     std::span(frame).subspan(kFrameHeaderBytes), hello(), std::nullopt);
    EXPECT_EQ(std::get<Refused>(verdict).later, later);
  }
}

std::variant<Greeting, Refused, Nonsense> judge_reply(
    const Bytes& frame, std::optional<Identity> certified = std::nullopt) {
  return judge_answer(std::span(frame).first<kFrameHeaderBytes>(),
                      std::span(frame).subspan(kFrameHeaderBytes), hello(), certified);
}

Greeting welcome() {
  return {.self = server(0), .peer = worker(3), .shared_memory = true, .silence = 2s};
}

TEST(Handshake, TakesAWelcomeFromTheOneItLookedFor) {
  const auto good = encode_greeting(kWelcome, welcome());
  const auto length =
      judge_answer_header(std::span(good).first<kFrameHeaderBytes>(), job_id_of("test"));
  ASSERT_TRUE(std::holds_alternative<std::size_t>(length));
  EXPECT_EQ(std::get<std::size_t>(length), kGreetingBytes);
  EXPECT_EQ(std::get<Greeting>(judge_reply(good)), welcome());
  EXPECT_EQ(std::get<Greeting>(judge_reply(good, server(0))), welcome());
  EXPECT_TRUE(std::holds_alternative<Nonsense>(judge_reply(good, server(1))));

  for (const Identity& other : {server(1), worker(0)}) {
    Greeting wrong = welcome();
    wrong.self = other;
    EXPECT_TRUE(std::holds_alternative<Nonsense>(judge_reply(encode_greeting(kWelcome, wrong))));
  }
  Greeting for_another = welcome();
  for_another.peer = worker(1);
  EXPECT_TRUE(
      std::holds_alternative<Nonsense>(judge_reply(encode_greeting(kWelcome, for_another))));
  Bytes damaged = good;
  damaged.back() ^= std::byte{1};
  EXPECT_TRUE(std::holds_alternative<Nonsense>(judge_reply(damaged)));
}

TEST(Handshake, ReadsARefusalAlsoOfAnotherVersionAndMakesItPrintable) {
  const Bytes plain = encode_refusal(job_id_of("test"), "not you", false);
  EXPECT_EQ(std::get<Refused>(judge_reply(plain)).reason, "not you");
  const FrameHeader header{.type = kRefuse, .job = job_id_of("test")};
  const std::string nasty = "a\x1b[31mb\n";
  Bytes other = frame_bytes(header, std::as_bytes(std::span(nasty)), 2);
  other.resize(kFrameHeaderBytes + nasty.size());
  EXPECT_TRUE(std::holds_alternative<std::size_t>(
      judge_answer_header(std::span(other).first<kFrameHeaderBytes>(), header.job)));
  EXPECT_EQ(std::get<Refused>(judge_reply(other)).reason, "a?[31mb?");
  EXPECT_EQ(encode_refusal(job_id_of("test"), std::string(5000, 'x'), false).size(),
            kFrameHeaderBytes + kMaxRefusalBytes);
}

TEST(Handshake, AnswersThatAreNoneAreNamed) {
  const JobId job = job_id_of("test");
  const auto problem = [&](const Bytes& frame) {
    const auto verdict = judge_answer_header(std::span(frame).first<kFrameHeaderBytes>(), job);
    const auto* text = std::get_if<std::string>(&verdict);
    return text != nullptr ? *text : "";
  };
  EXPECT_THAT(problem(frame_bytes({.type = kWelcome, .job = job_id_of("other")}, Bytes(16))),
              HasSubstr("another job"));
  EXPECT_THAT(problem(frame_bytes({.type = kWelcome, .job = job}, Bytes(16), 99)),
              HasSubstr("version 99"));
  EXPECT_THAT(problem(frame_bytes({.type = kWelcome, .job = job}, Bytes(17))),
              HasSubstr("no greeting"));
  EXPECT_THAT(problem(frame_bytes({.type = kRefuse, .job = job}, Bytes(513))),
              HasSubstr("no greeting"));
  EXPECT_THAT(problem(frame_bytes({.type = 40, .job = job}, Bytes(16))), HasSubstr("no greeting"));
}

}  // namespace
}  // namespace cohort::network
