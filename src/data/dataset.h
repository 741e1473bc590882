// An indexed, unchanging collection of labelled samples.
//
// Const methods may be called from several threads at once. Order, batches, sharding over workers
// and reading ahead are other classes' work (sample_order.h, loader.h); a data set only knows how
// to produce one sample. Implementations validate their files when they are built: a constructed
// data set can deliver every sample, or says which file is at fault (FileError).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cohort::data {

// The label of what is not to be predicted: it counts neither in the loss nor as right or wrong.
inline constexpr std::int64_t kNoLabel = -100;

// What a sample looks like once read: float32, channels x height x width. A text's words are
// numbers in a row, 1 x 1 x words.
struct SampleShape {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t numel() const { return channels * height * width; }
  friend bool operator==(const SampleShape&, const SampleShape&) = default;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  virtual SampleShape shape() const = 0;

  // One name for each class, in the order of the labels; its length is the number of classes.
  virtual const std::vector<std::string>& class_names() const = 0;

  // The label of sample `index`, 0 <= index < size(), without decoding it.
  virtual std::int64_t label(std::int64_t index) const = 0;

  // One, or as many as a text has words in a sample.
  virtual std::int64_t labels_per_sample() const { return 1; }
  // Writes the labels of sample `index` to `out`, which holds labels_per_sample() of them.
  virtual void read_labels(std::int64_t index, std::span<std::int64_t> out) const {
    out[0] = label(index);
  }

  // Writes sample `index`, normalised (and, in a training set, augmented), to `out`, which holds
  // shape().numel() floats. Everything random about it is drawn from `augmentation` alone, so
  // that equal arguments give equal samples.
  virtual void read(std::int64_t index, std::uint64_t augmentation, std::span<float> out) const = 0;
};

}  // namespace cohort::data
