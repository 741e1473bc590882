// What becomes of the models that workers offer.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::swamp {

// A whole model: parameters, then what batch normalisation has counted. Shared, never changed.
using ModelValues = std::shared_ptr<const std::vector<float>>;

enum class VerdictKind : std::uint8_t {
  kAccepted,  // it is the best model now
  kRejected,  // it was compared, and is not better
  kDropped,   // the queue was full of better claims
  kReplaced,  // a newer offer of its worker came before it was looked at
  kRefused,   // it, or its claim, is no number; or it could not be examined or kept
};
inline constexpr int kVerdictKinds = 5;
std::string_view to_text(VerdictKind kind);  // "accepted", ...

struct OfferVerdict {
  std::uint64_t sequence = 0;  // of the offer
  VerdictKind kind = VerdictKind::kRejected;
  // Its mean loss where it was examined, else NaN.
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t version = 0;  // of the best model once this was decided; 0: there is none
  std::string reason = {};    // of a refusal
};

// What came with a model that was pulled.
struct PulledModel {
  std::uint64_t version = 0;                               // from 1; 0: the initial values
  double score = std::numeric_limits<double>::infinity();  // the policy says of what
};

}  // namespace cohort::swamp
