#include "data/normalize.h"

#include "core/error.h"

namespace cohort::data {

Normalization Normalization::none(std::int64_t channels) {
  const auto n = static_cast<std::size_t>(channels);
  return {std::vector<double>(n, 0.0), std::vector<double>(n, 1.0)};
}

Normalization Normalization::half(std::int64_t channels) {
  const auto n = static_cast<std::size_t>(channels);
  return {std::vector<double>(n, 0.5), std::vector<double>(n, 0.5)};
}

NormalizeTable::NormalizeTable(const Normalization& normalization) {
  COHORT_CHECK(normalization.mean.size() == normalization.deviation.size(),
               "one mean and one deviation for each channel");
  for (std::size_t c = 0; c < normalization.mean.size(); ++c) {
    std::array<float, 256>& table = tables_.emplace_back();
    for (int value = 0; value < 256; ++value) {
      table[static_cast<std::size_t>(value)] =
          static_cast<float>((value / 255.0 - normalization.mean[c]) / normalization.deviation[c]);
    }
  }
}

}  // namespace cohort::data
