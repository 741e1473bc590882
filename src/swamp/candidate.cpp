#include "swamp/candidate.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace cohort::swamp {

std::string_view to_text(VerdictKind kind) {
  constexpr std::string_view kNames[kVerdictKinds] = {"accepted", "rejected", "dropped", "replaced",
                                                      "refused"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string unsound(const Candidate& candidate) {
  if (!std::isfinite(candidate.claim)) return "its claim is not a finite number";
  const bool finite = std::all_of(candidate.model->begin(), candidate.model->end(),
                                  [](float value) { return std::isfinite(value); });
  return finite ? "" : "the model holds numbers that are not finite";
}

Decision decide(const Candidate& candidate, VerdictKind kind, std::uint64_t version) {
  Decision decision{
      .worker = candidate.worker, .incarnation = candidate.incarnation, .verdict = {}};
  decision.verdict.sequence = candidate.sequence;
  decision.verdict.kind = kind;
  decision.verdict.version = version;
  return decision;
}

Judgement refusal(const Candidate& candidate, std::uint64_t version, const std::string& reason) {
  Judgement judgement{.decision = decide(candidate, VerdictKind::kRefused, version), .best = {}};
  judgement.decision.verdict.reason = reason;
  return judgement;
}

Judgement judge(const Candidate& candidate, std::uint64_t version, double loss, bool better) {
  const VerdictKind kind = better ? VerdictKind::kAccepted : VerdictKind::kRejected;
  Judgement judgement{.decision = decide(candidate, kind, version + (better ? 1 : 0)), .best = {}};
  judgement.decision.verdict.loss = loss;
  if (better) {
    judgement.best = BestRecord{.version = version + 1,
                                .claim = candidate.claim,
                                .loss = loss,
                                .score = loss,
                                .draws = 0,
                                .model = candidate.model,
                                .losses = {}};
  }
  return judgement;
}

double mean_of(std::span<const float> losses) {
  double sum = 0;
  for (const float loss : losses) sum += loss;
  const double mean = sum / static_cast<double>(losses.size());
  return std::isfinite(mean) ? mean : std::numeric_limits<double>::quiet_NaN();
}

PairedDifference paired_difference(std::span<const float> candidate, std::span<const float> best) {
  COHORT_CHECK(candidate.size() == best.size() && !best.empty(), "losses of the same samples");
  const auto count = static_cast<double>(best.size());
  double sum = 0;
  for (std::size_t i = 0; i < best.size(); ++i) sum += double{candidate[i]} - double{best[i]};
  PairedDifference difference{.mean = sum / count, .standard_error = 0};
  if (best.size() < 2) return difference;
  double squares = 0;
  for (std::size_t i = 0; i < best.size(); ++i) {
    const double off = double{candidate[i]} - double{best[i]} - difference.mean;
    squares += off * off;
  }
  difference.standard_error = std::sqrt(squares / (count - 1) / count);
  return difference;
}

}  // namespace cohort::swamp
