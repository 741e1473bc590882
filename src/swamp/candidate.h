// What the policies share.
#pragma once

#include <span>
#include <string>

#include "swamp/best_model.h"

namespace cohort::swamp {

// Why a candidate is refused at the door; empty where it is not.
std::string unsound(const Candidate& candidate);

Decision decide(const Candidate& candidate, VerdictKind kind, std::uint64_t version);

Judgement refusal(const Candidate& candidate, std::uint64_t version, const std::string& reason);

// After an examination: accepted where `better`, as the version after `version` and with its loss
// for a score, or else rejected.
Judgement judge(const Candidate& candidate, std::uint64_t version, double loss, bool better);

// NaN when there are none, or where one is not finite.
double mean_of(std::span<const float> losses);

// Mean, and standard error of the mean, of candidate minus best, sample by sample.
struct PairedDifference {
  double mean = 0;
  double standard_error = 0;
};
PairedDifference paired_difference(std::span<const float> candidate, std::span<const float> best);

}  // namespace cohort::swamp
