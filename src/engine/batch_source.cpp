#include "engine/batch_source.h"

#include <utility>

#include "engine/batch_uploader.h"
#include "engine/resident_data.h"

namespace cohort::engine {
namespace {

class LoadedBatches final : public BatchSource {
 public:
  LoadedBatches(const data::Dataset& dataset, const data::SampleOrder& order,
                const data::LoaderOptions& options, const BatchPlacement& placement)
      : shape_(dataset.shape()),
        loader_(make_loader(dataset, order, options, placement.device)),
        upload_(placement) {}

  void wait() override { batch_ = loader_.next(); }

  BatchTensors take() override { return upload_(std::exchange(batch_, {}), shape_); }

 private:
  const data::SampleShape shape_;
  data::Loader loader_;
  BatchUploader upload_;
  data::LoadedBatch batch_;
};

}  // namespace

std::unique_ptr<BatchSource> make_batch_source(const data::Dataset& dataset,
                                               const data::SampleOrder& order,
                                               const data::LoaderOptions& options,
                                               const BatchPlacement& placement) {
  if (placement.resident != nullptr) {
    auto source = placement.resident->batches(dataset, order, options.first_step, placement);
    if (source != nullptr) return source;
  }
  return std::make_unique<LoadedBatches>(dataset, order, options, placement);
}

}  // namespace cohort::engine
