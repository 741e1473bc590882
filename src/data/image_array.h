// Labelled images of one size, as the small data sets store them.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace cohort::data {

struct ImageArray {
  SampleShape shape;
  std::vector<std::uint8_t> pixels;  // size() x channels x height x width
  std::vector<std::uint8_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

}  // namespace cohort::data
