// Generated data: a pattern for each class plus noise. Learnable, and as large as one likes.
//
// Sample `index` has label index mod classes. Its values are the class's pattern, random blocks
// on a grid of at most 8 x 8 in each channel with deviation 0.5, plus uniform noise of deviation 1.
// The patterns depend on the seed alone, the noise on (seed, split, index): no files, no state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"
#include "data/dataset.h"

namespace cohort::data {

class SyntheticDataset final : public Dataset {
 public:
  // `split` ("train", "test") makes the noise of two sets of one seed independent. Throws
  // ConfigError when a size is not positive or too large.
  SyntheticDataset(SampleShape shape, std::int64_t classes, std::int64_t size, Seed seed,
                   std::string_view split);

  std::int64_t size() const override { return size_; }
  SampleShape shape() const override { return shape_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override {
    return index % static_cast<std::int64_t>(class_names_.size());
  }
  void read(std::int64_t index, std::uint64_t augmentation, std::span<float> out) const override;

 private:
  SampleShape shape_;
  std::int64_t size_;
  std::uint64_t noise_key_;
  std::int64_t grid_rows_;
  std::int64_t grid_columns_;
  std::vector<std::string> class_names_;
  std::vector<float> patterns_;  // classes x channels x grid_rows x grid_columns
};

}  // namespace cohort::data
