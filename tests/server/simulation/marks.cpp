#include "simulation/marks.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/random.h"

namespace cohort::server::simulation {

std::vector<float> initial_values(int workers) {
  std::vector<float> values(static_cast<std::size_t>(model_size(workers)), 0.0F);
  values[0] = 0.3F;
  return values;
}

float fraction(Seed seed, Rank worker, int push) {
  RandomStream random(derive_seed(
      seed, "fraction", {static_cast<std::uint64_t>(worker), static_cast<std::uint64_t>(push)}));
  return static_cast<float>(random.uniform(-1, 1));
}

void make_gradient(Seed seed, Rank worker, int push, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0F);
  out[0] = fraction(seed, worker, push);
  const int element = 1 + worker * kElementsEach + push / kDigitsEach;
  out[static_cast<std::size_t>(element)] =
      -static_cast<float>(kUnit << (kDigitBits * (push % kDigitsEach)));
}

int push_in(Rank worker, std::int64_t place, std::span<const float> piece) {
  for (int element = 0; element < kElementsEach; ++element) {
    const std::int64_t at = 1 + std::int64_t{worker} * kElementsEach + element - place;
    if (at < 0 || at >= static_cast<std::int64_t>(piece.size())) continue;
    const auto value = static_cast<std::uint32_t>(-piece[static_cast<std::size_t>(at)]);
    if (value == 0) continue;
    return element * kDigitsEach + (std::bit_width(value) - 4) / kDigitBits;
  }
  return -1;
}

bool read_digits(int workers, std::span<const float> parameters, Digits& digits) {
  for (Rank worker = 0; worker < workers; ++worker) {
    auto& row = digits[static_cast<std::size_t>(worker)];
    for (int element = 0; element < kElementsEach; ++element) {
      const float value =
          parameters[static_cast<std::size_t>(1 + worker * kElementsEach + element)];
      if (!(value >= 0 && value < static_cast<float>(1 << (kDigitBits * kDigitsEach))))
        return false;
      auto rest = static_cast<std::uint32_t>(value);
      if (static_cast<float>(rest) != value) return false;
      for (int digit = 0; digit < kDigitsEach; ++digit, rest >>= kDigitBits) {
        row[static_cast<std::size_t>(element * kDigitsEach + digit)] =
            static_cast<std::uint8_t>(rest & ((1U << kDigitBits) - 1));
      }
    }
  }
  return true;
}

Checkpoint checkpoint_of(int workers, std::uint64_t version, std::span<const float> values) {
  Checkpoint checkpoint{.values = {values.begin(), values.end()}, .version = version};
  Digits digits = {};
  read_digits(workers, values, digits);
  for (Rank rank = 0; rank < workers; ++rank) {
    const auto& row = digits[static_cast<std::size_t>(rank)];
    checkpoint.pushes.push_back(static_cast<std::uint64_t>(
        std::count_if(row.begin(), row.end(), [](std::uint8_t digit) { return digit != 0; })));
  }
  return checkpoint;
}

}  // namespace cohort::server::simulation
