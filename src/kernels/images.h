// Batches of images made in the memory of a GPU, where all images of a set lie as bytes.
//
// The values are those of data/array_dataset.h, to the bit in float32: a table says what a byte
// becomes, and a resize rounds every operation as the CPU does.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/element.h"
#include "kernels/memory.h"

namespace cohort::kernels {

// One axis of a bilinear resize: place i of the result is the sum over count[i] places from
// first[i] on, with the weights from taps * i on. Empty: the size stays.
struct ResizeAxis {
  std::span<const int> first = {};
  std::span<const int> count = {};
  std::span<const float> weights = {};
  int taps = 0;
};

struct ImageSet {
  std::span<const std::uint8_t> pixels;  // images x channels x height x width
  int channels = 0;
  int height = 0;
  int width = 0;
  std::span<const float> values;  // channels x 256: what a byte becomes
  ResizeAxis rows;
  ResizeAxis columns;  // empty if and only if `rows` is
};

// An image of a batch. Row y of what is taken is row y + down of the image, column x is column
// x + right, counted from the other side if mirrored; what lies outside is black.
struct ImageDraw {
  std::int64_t index = 0;
  std::int64_t label = 0;
  int down = 0;
  int right = 0;
  bool mirror = false;
};

struct ImageBatch {
  void* inputs = nullptr;  // of `element`, images x channels x height x width,
  Element element = Element::kFloat;
  bool channels_last = false;  // in that order, or with the channels innermost
  std::int64_t* labels = nullptr;
};

class GpuImages {
 public:
  // Copies the set to the current GPU. Throws RunError when there is too little memory.
  explicit GpuImages(const ImageSet& set);

  // Queues the making of a batch of the images that `draws` names once the stream gets there:
  // memory that the GPU can read. May be called by many threads, each with a stream of its own.
  void make(std::span<const ImageDraw> draws, const ImageBatch& batch, CUstream_st* stream) const;

 private:
  struct Axis {
    explicit Axis(const ResizeAxis& axis);
    int size;
    int taps;
    GpuMemory first;
    GpuMemory count;
    GpuMemory weights;
  };

  int channels_;
  int height_;
  int width_;
  GpuMemory pixels_;
  GpuMemory values_;
  Axis rows_;
  Axis columns_;
};

}  // namespace cohort::kernels
