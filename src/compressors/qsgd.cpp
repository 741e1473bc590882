#include "compressors/qsgd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "compressors/packing.h"
#include "compressors/wire.h"
#include "core/random.h"

namespace cohort::compressors {
namespace {

constexpr std::size_t kHeader = sizeof(float) + 1;
constexpr float kMax = std::numeric_limits<float>::max();

// Brings |x| s / norm about without a quotient that overflows: first a power of two that makes the
// norm about 1, which costs no accuracy.
detail::Rounding rounding_for(float norm, float largest, std::uint32_t levels) {
  detail::Rounding rounding;
  rounding.fraction_bits = 31U - static_cast<unsigned>(std::bit_width(levels));
  const auto most = static_cast<float>(levels << rounding.fraction_bits);
  const int exponent = std::clamp(-std::ilogb(norm), -126, 126);
  rounding.prescale = std::ldexp(1.0F, exponent);
  const double near_one = std::ldexp(static_cast<double>(norm), exponent);
  rounding.factor = static_cast<float>(static_cast<double>(most) / near_one);
  // A vector's only element is the norm, and rounding may put it above the last level.
  while (largest * rounding.prescale * rounding.factor > most) {
    rounding.factor = std::nextafter(rounding.factor, 0.0F);
  }
  return rounding;
}

// The bits of the largest level that the largest magnitude can be rounded to.
unsigned level_bits(float largest, const detail::Rounding& rounding) {
  const auto y = static_cast<std::uint32_t>(largest * rounding.prescale * rounding.factor);
  const std::uint32_t below_one = (1U << rounding.fraction_bits) - 1;
  const std::uint32_t top = (y + below_one) >> rounding.fraction_bits;
  return static_cast<unsigned>(std::bit_width(std::max(top, 1U)));
}

}  // namespace

double Qsgd::variance(std::size_t numel) const {
  const auto n = static_cast<double>(numel);
  const double s = levels_;
  return std::min(n / (s * s), std::sqrt(n) / s);
}

float Qsgd::unit(float norm, std::size_t numel) const {
  const double shrink = biased_ ? 1 / (1 + variance(numel)) : 1;
  const auto unit = static_cast<float>(shrink * static_cast<double>(norm) / levels_);
  // Rounded up, the largest level of the largest norm would be infinite.
  return std::isfinite(unit * static_cast<float>(levels_)) ? unit : std::nextafter(unit, 0.0F);
}

void Qsgd::encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) {
  if (dense.empty()) return;
  const detail::Extent extent = detail::extent_of(dense.data(), dense.size());
  const double exact = std::sqrt(extent.squares);
  // Squares of floats neither overflow nor vanish in double precision, so NaN and infinity here
  // were there before: they are sent as a norm that is refused.
  const float norm = std::isfinite(exact) ? static_cast<float>(std::min<double>(exact, kMax))
                                          : std::numeric_limits<float>::quiet_NaN();
  std::byte* out = detail::grow(wire, kHeader);
  detail::store(out, norm);
  if (norm == 0 || std::isnan(norm)) return;
  detail::Rounding rounding = rounding_for(norm, extent.largest, levels_);
  rounding.key = derive_seed(seed_, "qsgd",
                             {static_cast<std::uint64_t>(key.sender), key.sequence, key.tensor});
  const unsigned width = level_bits(extent.largest, rounding);
  out[sizeof norm] = static_cast<std::byte>(width);
  out = detail::grow(wire, detail::packed_bytes(dense.size(), width + 1));
  detail::pack_levels(dense.data(), dense.size(), rounding, width + 1, out);
}

unsigned Qsgd::checked_width(std::span<const std::byte> wire, std::size_t numel) const {
  detail::check_length(name(), wire, kHeader);
  const auto norm = detail::load<float>(wire.data());
  const auto width = std::to_integer<unsigned>(wire[sizeof norm]);
  if (!std::isfinite(norm) || std::signbit(norm)) {
    detail::refuse(name(), "a norm that is negative or not finite");
  }
  if (width > static_cast<unsigned>(std::bit_width(levels_)) || (width == 0) != (norm == 0)) {
    detail::refuse(name(), "levels of another width than it can have");
  }
  if (width == 0) return 0;
  const std::size_t packed = detail::packed_bytes(numel, width + 1);
  detail::check_length(name(), wire, kHeader + packed);
  const std::size_t tail_bits = numel % 256 * (width + 1) % 8;
  if (tail_bits != 0 && std::to_integer<unsigned>(wire[kHeader + packed - 1]) >> tail_bits != 0) {
    detail::refuse(name(), "bits set after the last element");
  }
  return width;
}

std::size_t Qsgd::decode(std::span<const std::byte> wire, const MessageKey&,
                         std::span<float> dense) const {
  if (dense.empty()) return 0;
  const unsigned width = checked_width(wire, dense.size());
  if (width == 0) {
    std::fill(dense.begin(), dense.end(), 0.0F);
    return kHeader;
  }
  const float step = unit(detail::load<float>(wire.data()), dense.size());
  detail::unpack_levels(wire.data() + kHeader, width + 1, step, dense.data(), dense.size());
  return kHeader + detail::packed_bytes(dense.size(), width + 1);
}

std::size_t Qsgd::decode_add(std::span<const std::byte> wire, const MessageKey&, float weight,
                             std::span<float> dense) const {
  if (dense.empty()) return 0;
  const unsigned width = checked_width(wire, dense.size());
  if (width == 0) return kHeader;
  const float step = unit(detail::load<float>(wire.data()), dense.size());
  detail::unpack_levels_add(wire.data() + kHeader, width + 1, step, weight, dense.data(),
                            dense.size());
  return kHeader + detail::packed_bytes(dense.size(), width + 1);
}

double Qsgd::contraction(std::int64_t numel) const {
  if (numel == 0) return 1;
  const double w = variance(static_cast<std::size_t>(numel));
  return biased_ ? 1 / (1 + w) : std::max(0.0, 1 - w);
}

std::size_t Qsgd::max_encoded_bytes(std::int64_t numel) const {
  if (numel == 0) return 0;
  const auto width = static_cast<unsigned>(std::bit_width(levels_));
  return kHeader + detail::packed_bytes(static_cast<std::size_t>(numel), width + 1);
}

}  // namespace cohort::compressors
