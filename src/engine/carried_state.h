// What recurrent models carry from batch to batch, of all workers together: a part of a checkpoint.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/worker_group.h"
#include "models/model.h"

namespace cohort::engine {

// Every worker's carried(), row after row, in main memory: of all columns of the text. Undefined
// when there is none, as with models that are not recurrent. All workers call it together.
at::Tensor gather_carried(const models::Model& model, const WorkerGroup& group);

// The reverse: the first worker brings the state of all, which may be undefined, and each worker's
// model gets the rows that SampleOrder gives it. All call it together.
void share_carried(const at::Tensor& of_all, models::Model& model, const WorkerGroup& group);

// While this lives, a model reads another text; then it goes on with its own.
class AnotherText {
 public:
  explicit AnotherText(models::Model& model) : model_(model), carried_(model.carried()) {
    model_.set_carried({});
  }
  ~AnotherText() { model_.set_carried(carried_); }
  AnotherText(const AnotherText&) = delete;
  AnotherText& operator=(const AnotherText&) = delete;

 private:
  models::Model& model_;
  at::Tensor carried_;
};

}  // namespace cohort::engine
