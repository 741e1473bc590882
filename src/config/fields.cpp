#include "config/run_config.h"

namespace cohort {
namespace {

constexpr double kCount = 1e15;  // far above any real count, exactly representable
constexpr double kAny = 1e308;

const char* const kWhat = "What to train";
const char* const kModel = "Model settings";
const char* const kData = "Data";
const char* const kOptimizer = "Optimizer";
const char* const kRate = "Learning rate over time";
const char* const kStop = "When to stop";
const char* const kRecord = "Evaluation, records, checkpoints";

}  // namespace

const std::vector<ConfigField>& config_fields() {
  using C = RunConfig;
  static const std::vector<ConfigField> table = {
      {"model", kWhat, &C::model, "network; see `cohort list models`", 0, 0, {}},
      {"data", kWhat, &C::data, "data set; see `cohort list data`", 0, 0, {}},
      {"method", kWhat, &C::method, "how workers keep in step; see `cohort list methods`", 0, 0, {}},
      {"seed", kWhat, &C::seed, "every random choice follows from it", 0, kCount, {}},
      {"device", kWhat, &C::device, "cpu, cuda or cuda:N", 0, 0, {}},
      {"threads", kWhat, &C::threads, "compute threads; 0: one for each core", 0, 4096, {}},
      {"memory-format", kWhat, &C::memory_format,
       "layout of images; auto: channels-last for convolutional networks", 0, 0,
       {"auto", "contiguous", "channels-last"}},
      {"init", kWhat, &C::init, "safetensors file with the initial weights", 0, 0, {}},

      {"dropout", kModel, &C::dropout, "probability; -1: the model's own", -1, 0.999, {}},
      {"depth", kModel, &C::depth, "layers of wideresnet and densenet; 0: the model's own", 0, 10000, {}},
      {"widen", kModel, &C::widen, "widening factor of wideresnet; 0: 4", 0, 1000, {}},
      {"growth", kModel, &C::growth, "growth rate of densenet; 0: 12", 0, 1000, {}},

      {"data-dir", kData, &C::data_dir, "where to look for the data first", 0, 0, {}},
      {"batch", kData, &C::batch, "samples in one forward pass of a worker", 1, 1 << 24, {}},
      {"train-size", kData, &C::train_size, "use only the first N training samples; 0: all", 0, kCount, {}},
      {"test-size", kData, &C::test_size, "use only the first N test samples; 0: all", 0, kCount, {}},
      {"image-size", kData, &C::image_size, "pixels a side after resizing; 0: the data's own", 0, 4096, {}},
      {"augment", kData, &C::augment, "random changes of training images", 0, 0,
       {"auto", "none", "crop-flip", "resized-crop"}},
      {"normalize", kData, &C::normalize,
       "auto: the data's mean and deviation; none: [0, 1]; half: [-1, 1]", 0, 0,
       {"auto", "none", "half"}},
      {"shuffle", kData, &C::shuffle, "a new order every epoch", 0, 0, {}},
      {"drop-last", kData, &C::drop_last, "leave out an epoch's incomplete last batch", 0, 0, {}},
      {"loader-threads", kData, &C::loader_threads, "threads reading ahead; 0: none", 0, 256, {}},
      {"partition", kData, &C::partition, "how the shards divide the training set", 0, 0,
       {"none", "random", "sorted", "dirichlet"}},
      {"partition-alpha", kData, &C::partition_alpha, "Dirichlet: small is uneven", 1e-6, 1e6, {}},
      {"shard-count", kData, &C::shard_count, "train on one of this many shards", 1, 1e6, {}},
      {"shard-index", kData, &C::shard_index, "which of them, from 0", 0, 1e6, {}},
      {"synthetic-shape", kData, &C::synthetic_shape, "CxHxW of --data synthetic", 0, 0, {}},
      {"synthetic-classes", kData, &C::synthetic_classes, "classes of --data synthetic", 2, 1e6, {}},

      {"optimizer", kOptimizer, &C::optimizer, "see `cohort list optimizers`", 0, 0, {}},
      {"lr", kOptimizer, &C::lr, "learning rate (the schedule's peak)", 0, 1e6, {}},
      {"momentum", kOptimizer, &C::momentum, "of sgd; 0: none", 0, 0.999999, {}},
      {"nesterov", kOptimizer, &C::nesterov, "Nesterov's form of momentum", 0, 0, {}},
      {"weight-decay", kOptimizer, &C::weight_decay, "L2 penalty (adamw: decoupled)", 0, 1e3, {}},
      {"no-norm-decay", kOptimizer, &C::no_norm_decay, "no weight decay on batch normalisation", 0, 0, {}},
      {"beta1", kOptimizer, &C::beta1, "of adam and adamw", 0, 0.999999, {}},
      {"beta2", kOptimizer, &C::beta2, "of adam and adamw", 0, 0.9999999, {}},
      {"epsilon", kOptimizer, &C::epsilon, "of adam and adamw", 1e-30, 1, {}},
      {"label-smoothing", kOptimizer, &C::label_smoothing, "share given to the wrong classes", 0, 0.999, {}},
      {"clip-norm", kOptimizer, &C::clip_norm, "longest gradient; 0: no limit", 0, kAny, {}},
      {"accumulate", kOptimizer, &C::accumulate, "forward passes for one step", 1, 1e6, {}},

      {"schedule", kRate, &C::schedule, "see `cohort list schedules`", 0, 0, {}},
      {"lr-step-size", kRate, &C::lr_step_size, "step: epochs between drops", 1e-6, 1e9, {}},
      {"lr-gamma", kRate, &C::lr_gamma, "step, multi-step: factor of a drop", 0, 1e6, {}},
      {"lr-milestones", kRate, &C::lr_milestones, "multi-step, piecewise: epochs, e.g. 30,60,80", 0, kAny, {}},
      {"lr-values", kRate, &C::lr_values, "piecewise: rates, one more than milestones", 0, kAny, {}},
      {"lr-min", kRate, &C::lr_min, "cosine, polynomial: last rate", 0, 1e6, {}},
      {"lr-power", kRate, &C::lr_power, "polynomial: exponent", 0, 100, {}},
      {"lr-start-factor", kRate, &C::lr_start_factor, "one-cycle: starts at lr / this", 1e-6, 1e9, {}},
      {"lr-end-factor", kRate, &C::lr_end_factor, "one-cycle: ends at its start / this", 1e-6, 1e12, {}},
      {"lr-peak-at", kRate, &C::lr_peak_at, "one-cycle: share of the run until the peak", 1e-6, 0.999999, {}},
      {"warmup-epochs", kRate, &C::warmup_epochs, "linear warm-up over this many epochs", 0, 1e6, {}},
      {"warmup-from", kRate, &C::warmup_from, "rate the warm-up begins with", 0, 1e6, {}},
      {"lr-scaling", kRate, &C::lr_scaling, "scale lr by the batch over --base-batch", 0, 0,
       {"none", "linear", "sqrt"}},
      {"base-batch", kRate, &C::base_batch, "the batch that --lr was tuned for", 0, 1e9, {}},

      {"epochs", kStop, &C::epochs, "passes over the training set", 1, 1e9, {}},
      {"iterations", kStop, &C::iterations, "exactly this many steps instead; 0: by epochs", 0, kCount, {}},
      {"target-accuracy", kStop, &C::target_accuracy, "stop when the test set's top-1 share is reached; 0: never", 0, 1, {}},

      {"eval-every", kRecord, &C::eval_every, "epochs between evaluations; 0: at the end only", 0, 1e9, {}},
      {"eval-batch", kRecord, &C::eval_batch, "samples in one forward pass of an evaluation", 1, 1 << 24, {}},
      {"record-every", kRecord, &C::record_every, "steps summed up in one record", 1, 1e9, {}},
      {"checkpoint-every", kRecord, &C::checkpoint_every, "steps between checkpoints; 0: once an epoch", 0, kCount, {}},
      {"keep", kRecord, &C::keep, "newest checkpoints kept, besides the best", 1, 1e6, {}},
  };
  return table;
}

}  // namespace cohort
