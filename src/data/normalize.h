// From bytes to the numbers a network sees: (byte / 255 - mean) / deviation, for each channel.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace cohort::data {

struct Normalization {
  std::vector<double> mean;       // one for each channel
  std::vector<double> deviation;  // > 0

  static Normalization none(std::int64_t channels);  // the values are in [0, 1]
  static Normalization half(std::int64_t channels);  // in [-1, 1]
};

// The 256 possible results of each channel, so that normalising a pixel is one load. Unchanging
// once built.
class NormalizeTable {
 public:
  explicit NormalizeTable(const Normalization& normalization);

  std::int64_t channels() const { return static_cast<std::int64_t>(tables_.size()); }
  const std::array<float, 256>& operator[](std::int64_t channel) const {
    return tables_[static_cast<std::size_t>(channel)];
  }

 private:
  std::vector<std::array<float, 256>> tables_;
};

}  // namespace cohort::data
