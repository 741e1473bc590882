// The batches of a data set, one after another, as tensors on the device that computes.
//
//   const auto source = make_batch_source(data, order, {.last_step = 1000}, placement);
//   for (Step step = 0; step < 1000; ++step) {
//     source->wait();
//     const BatchTensors batch = source->take();
//   }
//
// Where the data set lies in the GPU's memory (resident_data.h) they are made there; elsewhere a
// Loader reads them and a BatchUploader brings them. Both give the same values. Used from one
// thread, which computes on what it takes before it takes the next; the data set and the order
// outlive the source.
#pragma once

#include <memory>

#include "engine/batch_tensors.h"

namespace cohort::engine {

class BatchSource {
 public:
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  virtual ~BatchSource() = default;

  // Waits until what the next batch is made of is there.
  virtual void wait() = 0;

  // The batch that was waited for. May itself wait for the device, while it computes on earlier
  // ones.
  virtual BatchTensors take() = 0;
};

// `options`: where the batches begin and end, and how a loader reads them.
std::unique_ptr<BatchSource> make_batch_source(const data::Dataset& dataset,
                                               const data::SampleOrder& order,
                                               const data::LoaderOptions& options,
                                               const BatchPlacement& placement);

}  // namespace cohort::engine
