#include "swamp/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "swamp/swamp_spec.h"

namespace cohort::swamp {
namespace {

using testing::HasSubstr;

TEST(SwampMessages, ComeBackAsTheyWere) {
  const JoinedSwamp joined{.initialized = true, .known = {1, 5, 1ULL << 40}};
  EXPECT_EQ(decode_joined_swamp(encode(joined)), joined);
  const OfferBody offer{.claim = -0.125, .open = {1, 4}};
  EXPECT_EQ(decode_offer(encode(offer), 9), offer);
  OfferVerdict verdict{
      .sequence = 8, .kind = VerdictKind::kRefused, .loss = 0.5, .version = 3, .reason = "no"};
  const OfferVerdict back = decode_verdict(verdict_header(verdict), encode_payload(verdict));
  EXPECT_EQ(back.sequence, 8U);
  EXPECT_EQ(back.kind, VerdictKind::kRefused);
  EXPECT_EQ(back.loss, 0.5);
  EXPECT_EQ(back.version, 3U);
  EXPECT_EQ(back.reason, "no");
  EXPECT_THROW(decode_joined_swamp(Bytes(0)), PeerError);
  EXPECT_THROW(decode_joined_swamp(Bytes(2)), PeerError);
  EXPECT_THROW(decode_joined_swamp(Bytes(1 + 8 * 9)), PeerError);
  network::FrameHeader header = verdict_header(verdict);
  header.detail = kVerdictKinds;
  EXPECT_THROW(decode_verdict(header, Bytes(8)), PeerError);
}

TEST(SwampSpec, ComesBackAsItWasAndNothingElseIsOne) {
  SwampSpec spec{.workers = 4,
                 .values = 431'080,
                 .policy = "fifo",
                 .hysteresis = 0.25,
                 .settings = R"({"lr":0.1,"model":"mnistnet"})"};
  const std::string text = to_json(spec).dump();
  EXPECT_EQ(differences(spec, swamp_spec_from(text)), "");
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_THROW(swamp_spec_from(text.substr(0, cut)), PeerError);
  }
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = to_json(spec);
    changed[key] = value;
    return changed.dump();
  };
  EXPECT_THROW(swamp_spec_from(with("values", 0)), PeerError);
  EXPECT_THROW(swamp_spec_from(with("values", -1)), PeerError);
  EXPECT_THROW(swamp_spec_from(with("values", 1ULL << 63)), PeerError);
  EXPECT_THROW(swamp_spec_from(with("trainer-number", 0)), PeerError);
  EXPECT_THROW(swamp_spec_from(with("trainer-number", 1 << 30)), PeerError);
  EXPECT_THROW(swamp_spec_from(with("hysteresis", -1)), PeerError);
  EXPECT_THROW(swamp_spec_from(with("hysteresis", nullptr)), PeerError);
  EXPECT_THROW(swamp_spec_from(with("swamp-server", "newest")), PeerError);
  EXPECT_THROW(swamp_spec_from(with("settings", "[]")), PeerError);
  EXPECT_THROW(swamp_spec_from(with("more", 1)), PeerError);
  SwampSpec other = spec;
  other.settings = R"({"lr":0.2})";
  other.values = 1;
  EXPECT_THAT(differences(spec, other), HasSubstr("--lr is 0.2 here and 0.1 at the others"));
  EXPECT_THAT(differences(spec, other), HasSubstr("--model is not set here"));
  other.settings = R"({"workers":5,"lr":0.1,"model":"mnistnet"})";
  other.workers = 5;
  EXPECT_THAT(differences(spec, other), HasSubstr("--workers is 5 here and "));
  EXPECT_EQ(differences(spec, other).find("trainer-number"), std::string::npos);
  other = spec;
  other.values = 1;
  EXPECT_EQ(differences(spec, other),
            "the models are of 1 values here and of 431080 at the others");
}

}  // namespace
}  // namespace cohort::swamp
