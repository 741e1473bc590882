// Gradients that can be told apart after they have become parameters.
//
// With plain SGD at rate 1 every push adds a digit of its own to the model: push number k of worker
// w adds unit / (gradients of the round) to digit k of w's elements. So the model itself says which
// pushes are in it, how often, and among how many each was averaged. Element 0 is shared: it gets a
// fraction of every push, which no other order of summation gives to the last bit.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"

namespace cohort::server::simulation {

inline constexpr int kMaxWorkers = 4;
inline constexpr int kMaxPushes = 20;  // of a worker, all its processes together
inline constexpr int kDigitBits = 5;
inline constexpr int kDigitsEach = 4;  // in a float
inline constexpr int kElementsEach = kMaxPushes / kDigitsEach;
inline constexpr int kUnit = 12;  // divisible by every number of workers

using Digits = std::array<std::array<std::uint8_t, kMaxPushes>, kMaxWorkers>;

// What worker 0 has saved of the model.
struct Checkpoint {
  std::vector<float> values = {};
  std::uint64_t version = 0;
  std::vector<std::uint64_t> pushes = {};  // of each worker
};

inline std::int64_t model_size(int workers) { return 1 + std::int64_t{workers} * kElementsEach; }

std::vector<float> initial_values(int workers);

// The shared element's part of a push.
float fraction(Seed seed, Rank worker, int push);

void make_gradient(Seed seed, Rank worker, int push, std::span<float> out);

// Which digit a piece of a gradient holds; -1 when the digit is not in this piece.
int push_in(Rank worker, std::int64_t place, std::span<const float> piece);

// Of values that were the model at that version.
Checkpoint checkpoint_of(int workers, std::uint64_t version, std::span<const float> values);

// False when the elements are no sums of digits.
bool read_digits(int workers, std::span<const float> parameters, Digits& digits);

}  // namespace cohort::server::simulation
