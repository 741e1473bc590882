// The vectors every compressor is tried on.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "core/random.h"

namespace cohort::compressors {

struct NamedVector {
  std::string name;
  std::vector<float> values;
};

inline std::vector<float> gaussian(std::size_t numel, Seed seed, double scale = 1) {
  RandomStream random(seed, "test-vector", {numel});
  std::vector<float> values(numel);
  for (float& value : values) value = static_cast<float>(scale * random.normal());
  return values;
}

inline std::vector<NamedVector> test_vectors() {
  std::vector<NamedVector> all;
  for (const std::size_t numel : {0, 1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 1000, 4099}) {
    const std::string length = " of " + std::to_string(numel);
    all.push_back({"gaussian" + length, gaussian(numel, 1)});
    all.push_back({"huge" + length, gaussian(numel, 2, 1e36)});
    all.push_back({"tiny" + length, gaussian(numel, 3, 1e-30)});
    all.push_back({"zero" + length, std::vector<float>(numel, 0.0F)});
    all.push_back({"negative zero" + length, std::vector<float>(numel, -0.0F)});
    all.push_back({"constant" + length, std::vector<float>(numel, -2.5F)});
    NamedVector sparse{"sparse" + length, std::vector<float>(numel, 0.0F)};
    if (numel > 0) sparse.values[numel / 2] = -3.0F;
    all.push_back(sparse);
    NamedVector mixed{"mixed" + length, gaussian(numel, 4)};
    for (std::size_t i = 0; i < numel; i += 5) mixed.values[i] *= 1e6F;
    all.push_back(mixed);
  }
  return all;
}

inline double squared_norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

inline double squared_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return sum;
}

}  // namespace cohort::compressors
