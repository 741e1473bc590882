#include "core/random.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace cohort {
namespace {

std::uint64_t split_mix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t mix(std::uint64_t key, std::uint64_t number) {
  std::uint64_t state = key ^ std::rotl(number, 29);
  const std::uint64_t first = split_mix(state);
  return first ^ std::rotl(split_mix(state), 17) ^ number;
}

}  // namespace

std::uint64_t derive_seed(Seed seed, std::string_view purpose,
                          std::initializer_list<std::uint64_t> numbers) {
  std::uint64_t key = 0xcbf29ce484222325;  // FNV-1a of the purpose
  for (const char c : purpose) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  key = mix(key, seed);
  for (const std::uint64_t number : numbers) key = mix(key, number);
  return key;
}

RandomStream::RandomStream(std::uint64_t key) {
  for (std::uint64_t& word : state_) word = split_mix(key);
}

RandomStream::result_type RandomStream::operator()() {
  const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double RandomStream::uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

double RandomStream::uniform(double low, double high) { return low + (high - low) * uniform(); }

std::uint64_t RandomStream::below(std::uint64_t bound) {
  // Lemire's multiply-and-reject: unbiased, one division in the rare case only.
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>((*this)()) * bound;
  auto low = static_cast<std::uint64_t>(product);
  if (low < bound) {
    const std::uint64_t threshold = -bound % bound;
    while (low < threshold) {
      product = static_cast<Wide>((*this)()) * bound;
      low = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double RandomStream::gamma(double shape) {
  // Marsaglia and Tsang (2000); for shape < 1 the boost u^(1/shape).
  if (shape < 1.0) return gamma(shape + 1.0) * std::pow(1.0 - uniform(), 1.0 / shape);
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = normal();
    const double v = std::pow(1.0 + c * x, 3);
    if (v > 0 && std::log(1.0 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return d * v;
    }
  }
}

}  // namespace cohort
