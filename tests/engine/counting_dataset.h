// A data set that counts how often each of its samples is read.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace cohort::engine::test {

class CountingDataset final : public data::Dataset {
 public:
  explicit CountingDataset(std::unique_ptr<data::Dataset> inner)
      : inner_(std::move(inner)), reads_(static_cast<std::size_t>(inner_->size())) {}

  std::int64_t size() const override { return inner_->size(); }
  data::SampleShape shape() const override { return inner_->shape(); }
  const std::vector<std::string>& class_names() const override { return inner_->class_names(); }
  std::int64_t label(std::int64_t index) const override { return inner_->label(index); }
  void read(std::int64_t index, std::uint64_t augmentation, std::span<float> out) const override {
    inner_->read(index, augmentation, out);
    const std::lock_guard lock(mutex_);
    ++reads_.at(static_cast<std::size_t>(index));
  }

  // By index, with zeros for what was never read.
  std::vector<int> reads() const {
    const std::lock_guard lock(mutex_);
    return reads_;
  }

 private:
  std::unique_ptr<data::Dataset> inner_;
  mutable std::mutex mutex_;  // guards reads_
  mutable std::vector<int> reads_;
};

}  // namespace cohort::engine::test
