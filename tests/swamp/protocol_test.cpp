// The conversation between workers and a best-model server, frame by frame.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "swamp/pond.h"

namespace cohort::swamp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Type>
network::FrameHeader frame(const Pond::Worker&, Type type, std::uint64_t incarnation,
                           std::uint64_t sequence = 0, std::uint64_t place = 0,
                           std::uint32_t detail = 0) {
  network::FrameHeader header;
  header.type = static_cast<network::FrameType>(type);
  header.incarnation = incarnation;
  header.sequence = sequence;
  header.place = place;
  header.detail = detail;
  return header;
}

// --- joining -------------------------------------------------------------------------------------

TEST(Swamp, EverybodyBeginsWithWorkerZerosValues) {
  Pond pond(2);
  pond.client(1).pull(PullKind::kStart, 0);
  pond.connect(pond.at(1));
  pond.commit();
  EXPECT_FALSE(pond.client(1).pulled());
  EXPECT_EQ(pond.client(1).waits_for(), "the initial values of worker 0");
  pond.client(0).initialize(Pond::model(7));
  pond.client(0).pull(PullKind::kStart, 0);
  pond.connect(pond.at(0));
  pond.commit();
  ASSERT_TRUE(pond.client(1).pulled());
  EXPECT_THAT(pond.client(1).values(), ElementsAre(7, 7, 7, 7));
  EXPECT_EQ(pond.client(1).answer()->version, 0U);
}

TEST(Swamp, InitialValuesThatAreNoNumbersAreRefused) {
  Pond pond(1);
  pond.client(0).initialize(Pond::model(NAN));
  pond.client(0).pull(PullKind::kStart, 0);
  pond.connect(pond.at(0));
  pond.commit();
  ASSERT_TRUE(pond.client(0).membership().refused());
  EXPECT_THAT(*pond.client(0).membership().refused(), HasSubstr("not finite"));
}

TEST(Swamp, WhoComesLateBeginsWithTheBest) {
  Pond pond(2);
  pond.client(0).initialize(Pond::model(7));
  pond.client(0).pull(PullKind::kStart, 0);
  pond.connect(pond.at(0));
  pond.commit();
  pond.offer(0, 3, 1);
  pond.examine(1);
  pond.client(1).pull(PullKind::kStart, 0);
  pond.connect(pond.at(1));
  pond.commit();
  EXPECT_THAT(pond.client(1).values(), ElementsAre(3, 3, 3, 3));
  EXPECT_EQ(pond.client(1).answer()->version, 1U);
}

// --- offers --------------------------------------------------------------------------------------

TEST(Swamp, AcceptanceIsToldToNobodyBeforeItIsOnDisk) {
  Pond pond(2, /*keeps_state=*/true);
  pond.begin();
  pond.offer(0, 5, 1);
  pond.examine(5);
  pond.write();
  pond.commit();
  EXPECT_EQ(pond.client(0).take_verdicts().size(), 1U);
  pond.offer(0, 4, 1);
  pond.examine(4);
  ASSERT_TRUE(pond.writing);
  pond.pass(milliseconds(200));
  pond.client(1).pull(PullKind::kPolicy, 0);
  pond.commit();
  EXPECT_TRUE(pond.client(0).take_verdicts().empty());
  EXPECT_EQ(pond.acceptances, 1);
  ASSERT_TRUE(pond.client(1).pulled()) << "pulls do not wait for the disk";
  EXPECT_EQ(pond.client(1).answer()->version, 1U);
  pond.write();
  pond.commit();
  EXPECT_EQ(pond.client(0).take_verdicts().at(0).version, 2U);
  pond.client(1).pull(PullKind::kPolicy, 1);
  pond.commit();
  EXPECT_EQ(pond.client(1).answer()->version, 2U);
  EXPECT_THAT(pond.client(1).values(), ElementsAre(4, 4, 4, 4));
}

// Whatever the moment at which the connection breaks: one examination, one verdict.
TEST(Swamp, AConnectionLostAtAnyFrameChangesNothing) {
  for (int cut = 0; cut < 12; ++cut) {
    Pond pond(1);
    pond.begin();
    int passed = 0;
    const auto step = [&](bool delivered) {
      if (delivered && ++passed == cut) {
        pond.drop(pond.at(0));
        pond.connect(pond.at(0));
      }
      return delivered;
    };
    pond.client(0).offer(Pond::model(3), 1);
    for (bool more = true; more;) {
      more = step(pond.deliver_out(pond.at(0))) || step(pond.deliver_in(pond.at(0)));
      if (!more && pond.examining) pond.examine(3), more = true;
    }
    const auto verdicts = pond.client(0).take_verdicts();
    ASSERT_EQ(verdicts.size(), 1U) << cut;
    EXPECT_EQ(verdicts[0].kind, VerdictKind::kAccepted);
    EXPECT_EQ(pond.examinations, 1) << cut;
    EXPECT_EQ(pond.server->best().version, 1U);
  }
}

TEST(Swamp, AVerdictThatWasLostIsToldAgain) {
  Pond pond(1);
  pond.begin();
  pond.offer(0, 3, 1);
  pond.examine(3);
  pond.drop(pond.at(0));  // with the verdict under way
  EXPECT_TRUE(pond.client(0).take_verdicts().empty());
  pond.connect(pond.at(0));
  pond.commit();
  EXPECT_EQ(pond.client(0).take_verdicts().at(0).version, 1U);
  EXPECT_EQ(pond.server->counters().offers, 1U);
}

TEST(Swamp, AnAcceptanceThatNobodyHeardOfSurvivesACrash) {
  Pond pond(1, /*keeps_state=*/true);
  pond.begin();
  pond.offer(0, 3, 1);
  pond.examine(3);
  pond.disk = pond.writing;  // it is whole on disk, and nobody knows
  pond.crash_server();
  EXPECT_EQ(pond.server->best().version, 1U);
  pond.connect(pond.at(0));
  pond.commit();
  const auto verdicts = pond.client(0).take_verdicts();
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].kind, VerdictKind::kAccepted);
  EXPECT_EQ(verdicts[0].version, 1U);
  EXPECT_EQ(pond.examinations, 1) << "it is not examined again";
}

TEST(Swamp, WhatWasNotJudgedIsOfferedAgainAfterACrash) {
  Pond pond(1, /*keeps_state=*/true);
  pond.begin();
  pond.offer(0, 3, 1);
  pond.crash_server();
  pond.connect(pond.at(0));
  pond.commit();
  ASSERT_TRUE(pond.examining);
  pond.examine(3);
  pond.write();
  pond.commit();
  EXPECT_EQ(pond.client(0).take_verdicts().at(0).version, 1U);
}

TEST(Swamp, ADiskThatStaysFullRefusesTheModelInTheEnd) {
  Pond pond(1, /*keeps_state=*/true);
  pond.settings.persist_tries = 3;
  pond.start_server();
  pond.begin();
  pond.offer(0, 3, 1);
  pond.examine(3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pond.writing) << i;
    pond.fail_to_write();
    pond.pass(milliseconds(1200));
  }
  pond.commit();
  const auto verdicts = pond.client(0).take_verdicts();
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].kind, VerdictKind::kRefused);
  EXPECT_THAT(verdicts[0].reason, HasSubstr("no space"));
  EXPECT_EQ(pond.server->best().version, 0U);
  EXPECT_EQ(pond.acceptances, 0);
  // With room again, the next one is kept.
  while (pond.writing) pond.write();
  pond.offer(0, 2, 1);
  pond.examine(2);
  pond.write();
  pond.commit();
  EXPECT_EQ(pond.client(0).take_verdicts().at(0).version, 1U);
}

TEST(Swamp, AWorkerSendsNoMoreThanItsWindow) {
  Pond pond(1, false, "fifo");
  pond.begin();
  for (std::uint64_t i = 1; i <= kOfferWindow + 1; ++i) pond.offer(0, 3, 10.0 - double(i));
  EXPECT_EQ(pond.client(0).unsent(), 1U);
  EXPECT_EQ(pond.server->counters().offers, kOfferWindow);
  pond.examine(3);
  pond.commit();
  EXPECT_EQ(pond.client(0).unsent(), 0U);
}

TEST(Swamp, OnesOwnAcceptedModelCountsAsPulled) {
  Pond pond(2);
  pond.begin();
  pond.offer(0, 3, 1);
  pond.examine(3);
  pond.commit();
  for (const std::size_t which : {0U, 1U}) {
    pond.client(which).pull(PullKind::kPolicy, 0);
    pond.commit();
    ASSERT_TRUE(pond.client(which).pulled());
    EXPECT_EQ(pond.client(which).answer().has_value(), which == 1);
  }
}

TEST(Swamp, APullThatIsGivenUpDoesNotDisturbTheNext) {
  Pond pond(2);
  pond.begin();
  pond.offer(0, 3, 1);
  pond.examine(3);
  pond.client(1).pull(PullKind::kPolicy, 0);
  while (pond.deliver_out(pond.at(1))) continue;
  pond.deliver_in(pond.at(1));
  pond.client(1).cancel_pull();
  pond.client(1).pull(PullKind::kPolicy, 0);
  pond.commit();
  ASSERT_TRUE(pond.client(1).answer());
  EXPECT_THAT(pond.client(1).values(), ElementsAre(3, 3, 3, 3));
}

// --- going and coming ----------------------------------------------------------------------------

TEST(Swamp, ASilentWorkerIsGivenUpAndMayComeBack) {
  Pond pond(2);
  pond.begin();
  pond.client(0).pull(PullKind::kFinal, 0);
  pond.commit();
  pond.pass(milliseconds(2400), {1});
  pond.commit();
  EXPECT_FALSE(pond.client(0).pulled());
  pond.pass(milliseconds(300), {1});
  pond.commit();
  EXPECT_TRUE(pond.client(0).pulled());
  EXPECT_EQ(pond.server->counters().evictions, 1U);
  pond.connect(pond.at(1));
  pond.commit();
  EXPECT_EQ(pond.client(1).membership().rejoined(), 0U);
  pond.offer(1, 3, 1);
  pond.examine(3);
  pond.commit();
  EXPECT_EQ(pond.client(1).take_verdicts().at(0).kind, VerdictKind::kAccepted);
}

TEST(Swamp, AProcessWhosePlaceIsTakenIsFenced) {
  Pond pond(1);
  pond.begin();
  // It sleeps; a new process takes its place.
  pond.pass(milliseconds(2700), {0});
  Pond::Worker& second = pond.start_worker(0);
  second.client->pull(PullKind::kStart, 0);
  pond.connect(second);
  pond.commit();
  ASSERT_TRUE(second.client->membership().joined());
  // It wakes up, and its offer with it.
  pond.at(0).client->offer(Pond::model(1), 0.1);
  pond.connect(pond.at(0));
  pond.commit();
  EXPECT_EQ(pond.client(0).membership().rejoined(), 1U);
  EXPECT_FALSE(pond.client(0).membership().joined());
  EXPECT_EQ(pond.examinations, 0);
  // The new one is there to stay.
  for (int i = 0; i < 90; ++i) pond.pass(milliseconds(50)), pond.commit();
  ASSERT_TRUE(pond.client(0).membership().refused());
  EXPECT_THAT(*pond.client(0).membership().refused(), HasSubstr("already there"));
  EXPECT_TRUE(second.client->membership().joined());
}

TEST(Swamp, WhatAKilledWorkerOfferedIsJudgedBeforeTheEnd) {
  Pond pond(2);
  pond.begin();
  pond.offer(1, 3, 1);
  pond.drop(pond.at(1));
  pond.client(0).leave();
  pond.commit();
  EXPECT_TRUE(pond.client(0).left());
  pond.pass(seconds(60));
  EXPECT_FALSE(pond.server->finished()) << "a model still waits";
  pond.examine(3);
  EXPECT_EQ(pond.server->best().version, 1U);
  pond.pass(milliseconds(100));
  EXPECT_TRUE(pond.server->finished());
}

TEST(Swamp, AWorkerIsLetGoWhenAllItOfferedIsJudged) {
  Pond pond(1);
  pond.begin();
  pond.offer(0, 3, 1);
  pond.offer(0, 2, 1);
  pond.client(0).leave();
  pond.commit();
  EXPECT_FALSE(pond.client(0).left());
  pond.examine(3);
  pond.commit();
  EXPECT_FALSE(pond.client(0).left());
  pond.examine(2);
  pond.commit();
  EXPECT_TRUE(pond.client(0).left());
  EXPECT_EQ(pond.client(0).take_verdicts().size(), 2U);
  pond.pass(milliseconds(100));
  EXPECT_EQ(pond.server->finished().value_or(""), "all workers are done");
}

TEST(Swamp, TheFinalModelWaitsForEverybodyAndEveryVerdict) {
  Pond pond(3);
  pond.begin();
  pond.offer(2, 3, 1);
  pond.client(0).pull(PullKind::kFinal, 0);
  pond.client(1).pull(PullKind::kFinal, 0);  // two may wait for each other
  pond.client(2).leave();
  pond.commit();
  EXPECT_FALSE(pond.client(0).pulled());
  pond.examine(3);
  pond.commit();
  for (const std::size_t which : {0U, 1U}) {
    ASSERT_TRUE(pond.client(which).pulled());
    EXPECT_EQ(pond.client(which).answer()->version, 1U);
  }
}

TEST(Swamp, TheServerEndsWhenNobodyHasBeenThereForLong) {
  Pond pond(1);
  pond.settings.idle_exit = seconds(10);
  pond.start_server();
  pond.pass(seconds(9));
  EXPECT_FALSE(pond.server->finished());
  pond.pass(seconds(2));
  EXPECT_TRUE(pond.server->finished());
}

TEST(Swamp, AServerWithoutItsStateIsNotTheSame) {
  Pond pond(1);
  pond.begin();
  pond.crash_server();
  pond.connect(pond.at(0));
  pond.commit();
  ASSERT_TRUE(pond.client(0).membership().refused());
  EXPECT_THAT(*pond.client(0).membership().refused(), HasSubstr("--state-dir"));
}

TEST(Swamp, ADamagedStateIsAFileError) {
  Pond pond(1, /*keeps_state=*/true);
  pond.begin();
  pond.offer(0, 3, 1);
  pond.examine(3);
  pond.write();
  const SwampSnapshot sound = *pond.disk;
  const auto fails = [&](SwampSnapshot damaged) {
    EXPECT_THROW(BestModelServer(pond.settings, pond, &damaged), FileError);
  };
  EXPECT_NO_THROW(BestModelServer(pond.settings, pond, &sound));
  for (std::size_t cut = 0; cut < sound.state.size(); cut += 7) {
    SwampSnapshot damaged = sound;
    damaged.state.resize(cut);
    fails(damaged);
  }
  SwampSnapshot other = sound;
  other.model = std::make_shared<const std::vector<float>>(3, 1.0F);
  fails(other);
  other.model = nullptr;
  fails(other);
  other = sound;
  other.losses[0] = NAN;
  fails(other);
}

// --- lies ----------------------------------------------------------------------------------------

TEST(Swamp, LiesEndTheConnectionAndNothingElse) {
  Pond pond(2);
  pond.begin();
  pond.offer(0, 9, 1);
  pond.examine(9);
  pond.commit();
  const auto incarnation = [&] {
    // As its own frames show it.
    pond.client(0).pull(PullKind::kPolicy, 0);
    const std::uint64_t found = pond.at(0).out.back().header.incarnation;
    pond.commit();
    return found;
  }();
  const Bytes four(4 * sizeof(float));
  const Bytes claim = encode(OfferBody{.claim = 1, .open = {}});
  const auto lie = [&](const network::FrameHeader& header, const Bytes& payload) {
    network::FrameHeader sent = header;
    sent.length = static_cast<std::uint32_t>(payload.size());
    EXPECT_THROW(pond.server->on_frame(*pond.at(0).connection, sent, payload, pond.now), PeerError)
        << header.type << " " << header.sequence;
  };
  const auto of = [&](auto type, std::uint64_t sequence = 0, std::uint64_t place = 0,
                      std::uint32_t detail = 0) {
    return frame(pond.at(0), type, incarnation, sequence, place, detail);
  };
  lie(of(membership::MemberFrame::kJoin), {});
  lie(of(membership::MemberFrame::kJoined), {});
  lie(of(static_cast<SwampFrame>(32)), {});
  lie(of(SwampFrame::kPull, 9, 0, 3), {});
  lie(of(SwampFrame::kOfferValues, 2), four);
  lie(of(SwampFrame::kOffer, 2), {});
  lie(of(SwampFrame::kOffer, 0), claim);
  lie(of(SwampFrame::kOffer, 2), encode(OfferBody{.claim = 1, .open = {2}}));
  lie(of(SwampFrame::kOffer, 9), encode(OfferBody{.claim = 1, .open = {3, 3}}));
  lie(of(SwampFrame::kOffer, 99),
      encode(OfferBody{.claim = 1, .open = {1, 2, 3, 4, 5, 6, 7, 8, 9}}));
  pond.server->on_frame(*pond.at(0).connection, of(SwampFrame::kOffer, 2), claim, pond.now);
  lie(of(SwampFrame::kOffer, 3), claim);
  lie(of(SwampFrame::kOfferValues, 3), four);
  lie(of(SwampFrame::kOfferValues, 2, 1), four);
  lie(of(SwampFrame::kOfferValues, 2), Bytes(5 * sizeof(float)));
  lie(of(SwampFrame::kOfferValues, 2), Bytes(3));
  lie(of(SwampFrame::kOfferValues, 2), {});
  lie(of(SwampFrame::kPull, 9), {});
  lie(of(membership::MemberFrame::kLeave), {});
  // The worker and its offer are as they were.
  network::FrameHeader rest = of(SwampFrame::kOfferValues, 2);
  rest.length = 16;
  pond.server->on_frame(*pond.at(0).connection, rest, four, pond.now);
  ASSERT_TRUE(pond.examining);
  pond.examine(1);
  EXPECT_EQ(pond.server->best().version, 2U);
  lie(of(SwampFrame::kOffer, 1), claim);  // judged, and heard of
  EXPECT_EQ(pond.server->counters().fenced, 0U);
}

TEST(Swamp, AFrameBeforeJoiningEndsTheConnection) {
  Pond pond(1);
  pond.server->on_connected(77, 0, pond.now);
  EXPECT_THROW(pond.server->on_frame(77, frame(pond.at(0), SwampFrame::kPull, 0), {}, pond.now),
               PeerError);
  EXPECT_THROW(
      pond.server->on_frame(77, frame(pond.at(0), membership::MemberFrame::kJoin, 0), {}, pond.now),
      PeerError);
}

}  // namespace
}  // namespace cohort::swamp
