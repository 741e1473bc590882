#include "data/synthetic.h"

#include <algorithm>

#include "core/error.h"
#include "core/random.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kGrid = 8;
constexpr float kPatternDeviation = 0.5F;
// Uniform on [-a, a) has variance a^2 / 3.
constexpr float kNoiseHalfWidth = 1.7320508F;

// A counter hashed (SplitMix64): no chain from value to value, so the loop below pipelines.
std::uint64_t hash(std::uint64_t key, std::uint64_t counter) {
  std::uint64_t z = key + counter * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

float noise_of(std::uint64_t bits) {
  return (static_cast<float>(bits & 0xffff) + 0.5F) * (2 * kNoiseHalfWidth / 65536) -
         kNoiseHalfWidth;
}

void write_noise(std::uint64_t key, std::span<float> out) {
  const std::size_t whole = out.size() / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4) {
    const std::uint64_t bits = hash(key, i / 4);
    out[i] = noise_of(bits);
    out[i + 1] = noise_of(bits >> 16);
    out[i + 2] = noise_of(bits >> 32);
    out[i + 3] = noise_of(bits >> 48);
  }
  std::uint64_t bits = hash(key, whole / 4);
  for (std::size_t i = whole; i < out.size(); ++i, bits >>= 16) out[i] = noise_of(bits);
}

}  // namespace

SyntheticDataset::SyntheticDataset(SampleShape shape, std::int64_t classes, std::int64_t size,
                                   Seed seed, std::string_view split)
    : shape_(shape),
      size_(size),
      noise_key_(derive_seed(seed, split)),
      grid_rows_(std::min(kGrid, shape.height)),
      grid_columns_(std::min(kGrid, shape.width)) {
  constexpr std::int64_t kLimit = 1 << 16;
  for (const std::int64_t side : {shape.channels, shape.height, shape.width, classes}) {
    if (side < 1 || side > kLimit) {
      throw ConfigError("synthetic data: channels, height, width and classes must be 1 to 65536");
    }
  }
  if (shape.channels * shape.height > (std::int64_t{1} << 28) / shape.width ||
      classes * shape.channels > std::int64_t{1} << 22) {
    throw ConfigError("synthetic data: samples or patterns too large; choose a smaller shape");
  }
  if (size < 1) throw ConfigError("synthetic data: there must be at least one sample");
  const auto cells = static_cast<std::size_t>(shape.channels * grid_rows_ * grid_columns_);
  patterns_.reserve(static_cast<std::size_t>(classes) * cells);
  for (std::int64_t c = 0; c < classes; ++c) {
    class_names_.push_back("class " + std::to_string(c));
    RandomStream random(seed, "synthetic pattern", {static_cast<std::uint64_t>(c)});
    for (std::size_t i = 0; i < cells; ++i) {
      patterns_.push_back(kPatternDeviation * static_cast<float>(random.normal()));
    }
  }
}

void SyntheticDataset::read(std::int64_t index, std::uint64_t, std::span<float> out) const {
  COHORT_CHECK(index >= 0 && index < size_, "sample index in range");
  COHORT_CHECK(static_cast<std::int64_t>(out.size()) == shape_.numel(), "room for one sample");
  write_noise(derive_seed(noise_key_, "noise", {static_cast<std::uint64_t>(index)}), out);
  const std::int64_t cells = grid_rows_ * grid_columns_;
  const float* pattern = patterns_.data() + label(index) * shape_.channels * cells;
  float* row = out.data();
  for (std::int64_t c = 0; c < shape_.channels; ++c, pattern += cells) {
    for (std::int64_t y = 0; y < shape_.height; ++y, row += shape_.width) {
      const float* cell = pattern + y * grid_rows_ / shape_.height * grid_columns_;
      std::int64_t x = 0;
      for (std::int64_t g = 0; g < grid_columns_; ++g) {
        const std::int64_t end = (g + 1) * shape_.width / grid_columns_;
        for (; x < end; ++x) row[x] += cell[g];
      }
    }
  }
}

}  // namespace cohort::data
