#include "simulation/oracle.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/random.h"

namespace cohort::swamp::simulation {

ModelValues make_model(float quality, std::uint64_t mark) {
  std::vector<float> values(kValues);
  values.front() = quality;
  values[1] = static_cast<float>(mark);
  // The mark stands at the end too: a model is whole or it is not.
  values.back() = static_cast<float>(mark);
  return std::make_shared<const std::vector<float>>(std::move(values));
}

float quality_of(const std::vector<float>& model) { return model.front(); }

std::uint64_t mark_of(std::span<const float> model) {
  if (model[1] != model.back()) throw Violation("a model of two halves");
  return static_cast<std::uint64_t>(model[1]);
}

std::vector<float> losses_of(const std::vector<float>& model, std::uint64_t draw) {
  std::vector<float> losses(kSamples, quality_of(model));
  if (draw > 0) {
    RandomStream random(draw, "draw");
    for (float& loss : losses) loss += static_cast<float>(random.uniform(-0.2, 0.2));
  }
  return losses;
}

void Oracle::server_started(std::uint64_t version) {
  require(version >= newest_, "version " + std::to_string(newest_) +
                                  " was told, and the server begins with " +
                                  std::to_string(version));
  version_ = version;
  examined_.clear();
  again_.clear();
}

void Oracle::offered(std::uint64_t mark, float quality, bool sound) {
  offers_[mark] = {.quality = quality, .sound = sound, .verdicts = 0};
}

void Oracle::examined(std::uint64_t mark) {
  require(offers_.count(mark) == 1, "something is examined that nobody offered");
  require(offers_[mark].sound, "what is no number is examined");
  if (examined_.insert(mark).second) return;
  const auto again = again_.find(mark);
  require(again != again_.end() && again->second > 0,
          "model " + std::to_string(mark) + " is examined twice in a life");
  --again->second;
}

void Oracle::accepted(const BestRecord& best) {
  require(best.version == version_ + 1, "versions do not grow by one");
  require(!final_sent_ || !faultless_, "a model is accepted after the last word");
  version_ = best.version;
  accepted_.insert(mark_of(*best.model));
  require(std::isfinite(best.loss) && std::isfinite(best.score), "a best model without a loss");
  require(offers_[mark_of(*best.model)].sound, "what is no number has won");
}

void Oracle::sent(std::uint64_t version, const std::optional<SwampSnapshot>& disk) {
  if (version == 0) return;
  newest_ = std::max(newest_, version);
  if (!keeps_state_) return;
  require(disk.has_value(), "a version is told while nothing is on disk");
  const auto best = nlohmann::json::parse(disk->state).at("best");
  require(!best.is_null() && best.at("version").get<std::uint64_t>() >= version,
          "version " + std::to_string(version) + " is told before it is on disk");
}

void Oracle::told(std::uint64_t version, std::uint64_t mark) {
  const auto [known, first] = models_.emplace(version, mark);
  require(first || known->second == mark, "two models of version " + std::to_string(version));
}

void Oracle::judged(std::uint64_t mark, const OfferVerdict& verdict) {
  Offer& offer = offers_.at(mark);
  require(++offer.verdicts == 1, "an offer has two verdicts");
  if (!offer.sound) require(verdict.kind == VerdictKind::kRefused, "what is no number was judged");
  // Also where the server crashed between the two.
  if (accepted_.count(mark) == 1 && fenced_.count(mark) == 0) {
    require(verdict.kind == VerdictKind::kAccepted, "a model was accepted, its worker hears else");
  }
  if (verdict.kind != VerdictKind::kRejected || std::isnan(verdict.loss)) return;
  best_rejected_ = std::min(best_rejected_, offer.quality);
}

void Oracle::sent_as_final(std::uint64_t version) {
  final_sent_ = true;
  require(version == version_, "the last word is of version " + std::to_string(version) + " of " +
                                   std::to_string(version_));
}

void Oracle::sent_as_final(const std::vector<float>& model) {
  // Without hysteresis nothing better was ever sent away.
  if (spec_.policy != "validated") return;
  require(quality_of(model) <= best_rejected_, "a better model than the last one was rejected");
}

}  // namespace cohort::swamp::simulation
