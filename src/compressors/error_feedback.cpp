#include "compressors/error_feedback.h"

#include "core/error.h"

namespace cohort {

void ErrorFeedback::encode(std::span<const float> input, Rank sender, std::uint64_t sequence,
                           Bytes& wire, std::span<float> sent) {
  COHORT_CHECK(input.size() == e_.size() && sent.size() == e_.size(),
               "error feedback got a vector of another length than its memory");
  for (std::size_t i = 0; i < e_.size(); ++i) e_[i] += input[i];
  codec_.encode(e_, sender, sequence, wire);
  // Through the wire, not beside it: sender and receivers must subtract and add the same numbers.
  codec_.decode(wire, sender, sequence, sent);
  for (std::size_t i = 0; i < e_.size(); ++i) e_[i] -= sent[i];
}

}  // namespace cohort
