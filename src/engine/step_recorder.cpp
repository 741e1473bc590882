#include "engine/step_recorder.h"

#include <utility>

#include "methods/device_work.h"

namespace cohort::engine {
namespace {

// Steps that are not recorded at first: libraries choose their algorithms and allocate in them.
constexpr int kStepsBefore = 3;

}  // namespace

struct StepRecorder::Recording {
  Look look;
  BatchTensors batch;  // what is repeated reads
  at::Tensor result;   // and writes
  methods::DeviceGraph graph;
};

StepRecorder::StepRecorder(at::Generator generator, Passes passes)
    : generator_(std::move(generator)), passes_(std::move(passes)) {}
StepRecorder::~StepRecorder() = default;

at::Tensor StepRecorder::run(const BatchTensors& batch, std::int64_t samples_of_all) {
  const Look look{batch.inputs.sizes().vec(), batch.labels.sizes().vec(), samples_of_all};
  if (recording_ && look == recording_->look) {
    take(batch);
    recording_->graph.replay();
    return recording_->result;
  }
  alike_ = look == last_ ? alike_ + 1 : 1;
  last_ = look;
  // An epoch's last batch looks different, but one recording is enough.
  if (recording_) return passes_(batch, samples_of_all);
  if (alike_ <= kStepsBefore) {
    const methods::DeviceTurn turn(batch.inputs.device());
    return passes_(batch, samples_of_all);
  }
  auto recording = std::make_unique<Recording>();
  recording->look = look;
  recording->batch = batch.stays ? batch : BatchTensors{batch.inputs.clone(), batch.labels.clone()};
  recording->graph.record(generator_,
                          [&] { recording->result = passes_(recording->batch, samples_of_all); });
  recording->graph.replay();
  recording_ = std::move(recording);
  return recording_->result;
}

// Copies what does not lie where it is read anyway.
void StepRecorder::take(const BatchTensors& batch) {
  const BatchTensors& read = recording_->batch;
  if (read.inputs.data_ptr() != batch.inputs.data_ptr()) read.inputs.copy_(batch.inputs);
  if (read.labels.data_ptr() != batch.labels.data_ptr()) read.labels.copy_(batch.labels);
}

}  // namespace cohort::engine
