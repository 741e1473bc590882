// A replica's model as one vector in main memory, for sending it away: the parameters in the order
// of the arena, without its padding, then the batch-norm statistics. Replicas of one model and
// memory format have the same, on whatever device they are.
#pragma once

#include <cstdint>
#include <span>

#include "methods/replica.h"

namespace cohort::methods {

std::int64_t flat_size(const Replica& replica);

// `values` has flat_size() elements in both.
void copy_model_to(std::span<float> values, const Replica& replica);
void copy_model_from(std::span<const float> values, Replica& replica);

}  // namespace cohort::methods
