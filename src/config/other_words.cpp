#include "config/other_words.h"

#include <algorithm>

#include "core/text.h"

namespace cohort::config {
namespace {

// Each line is one meaning; ours first where there is one.
constexpr std::string_view kMeanings[] = {
    "model arch architecture network net a model-name",
    "data dataset data-set dataset-name",
    "data-dir data-path data-root dataset-dir dataset-path datadir root training-data-dir "
    "eval-data-dir",
    "method algorithm algo",
    "engine backend dist-backend strategy distributed-backend",
    "workers gpus num-gpus ngpus ngpu nproc nproc-per-node np world-size num-processes "
    "num-replicas replicas n-workers size n trainer-number n-mpi-process",
    "loader-threads num-workers data-workers dataloader-num-workers num-data-workers j "
    "workers-per-gpu num-loader-workers",
    "threads num-threads nthreads cpu-threads omp-num-threads",
    "device cuda gpu use-cuda use-gpu accelerator on-cuda",
    "batch batch-size bs b train-batch-size per-device-train-batch-size micro-batch-size "
    "mini-batch-size batchsize train-bs",
    "eval-batch eval-batch-size test-batch-size val-batch-size per-device-eval-batch-size",
    "epochs num-epochs n-epochs max-epochs num-train-epochs e nb-epochs train-epochs passes",
    "iterations max-steps steps num-steps train-steps max-iter iters max-iters num-iterations",
    "optimizer opt optim optimiser",
    "lr learning-rate base-lr init-lr initial-lr eta",
    "schedule lr-scheduler scheduler lr-schedule lr-policy sched lr-scheduler-type lr-decay",
    "lr-milestones milestones lr-steps lr-decay-epochs lr-changes",
    "lr-step-size step-size lr-decay-step",
    "lr-gamma gamma lr-factor decay-rate lr-decay-rate",
    "warmup-epochs warmup lr-warmup-epochs warmup-steps num-warmup-steps",
    "momentum sgd-momentum momentum-factor m",
    "nesterov use-nesterov",
    "weight-decay wd l2 l2-penalty decay",
    "beta1 adam-beta1",
    "beta2 adam-beta2",
    "epsilon eps adam-epsilon",
    "clip-norm max-grad-norm clip-grad clip-grad-norm grad-clip gradient-clip-val "
    "gradient-clipping clip grad-norm-clip",
    "accumulate gradient-accumulation-steps grad-accum grad-accumulation accum-steps "
    "accumulate-grad-batches accumulation-steps iter-size",
    "label-smoothing smoothing label-smooth",
    "dropout drop drop-rate drop-prob",
    "seed random-seed manual-seed rng-seed manualseed",
    "runs-dir output-dir out-dir output outdir save-dir log-dir logdir workdir work-dir",
    "name run-name exp-name experiment experiment-name run-id",
    "resume checkpoint ckpt resume-from resume-from-checkpoint load load-checkpoint restore",
    "init pretrained weights init-from pretrained-weights load-weights",
    "record-every log-interval log-every log-freq print-freq logging-steps display summary-freq",
    "checkpoint-every save-every save-freq save-steps save-interval checkpoint-interval",
    "eval-every eval-interval eval-freq eval-steps val-interval validate-every test-interval",
    "keep save-total-limit keep-checkpoints max-to-keep",
    "image-size img-size input-size resolution crop-size",
    "augment augmentation aug",
    "batch-norm sync-bn syncbn sync-batchnorm bn",
    "average-every local-steps sync-every tau local-step averaging-period",
    "topology graph-topology",
    "compressor compression comm-op quantizer compress",
    "compress-ratio sparsity compression-ratio k",
    "quantize-bits bits quantize-level quantization-bits",
    "consensus-stepsize consensus-step-size consensus-lr",
    "meet master-addr master-port master dist-url init-method rdzv-endpoint coordinator",
    "servers ps ps-hosts parameter-servers pserver pservers server",
    "rank node-rank local-rank worker-index task-index trainer-id",
    "quiet silent q",
};

// What a command may have instead of a meaning that it lacks: its flag, and the words for that.
struct Nearest {
  std::string_view name;
  std::string_view words;
};

constexpr Nearest kNearest[] = {
    {"eval-batch", "batch batch-size bs b batchsize mini-batch-size"},
    {"eval-batch-size", "batch batch-size bs b batchsize mini-batch-size"},
    {"out", "output output-file output-dir out-dir out-file outfile o file save"},
    {"output", "out output-file output-dir out-dir out-file outfile o file save"},
};

struct Advice {
  std::string_view words;
  std::string_view text;
};

constexpr Advice kAdvice[] = {
    {"amp fp16 bf16 half mixed-precision precision use-amp bfloat16 autocast",
     "computing is in float32, but on a GPU, where cohort train and eval have --precision bf16 and "
     "tf32: leave it out"},
    {"tensorboard wandb mlflow use-wandb report-to",
     "a run's metrics.jsonl has every figure, and `cohort report RUN` draws them: leave it out"},
    {"verbose v debug", "progress is shown unless --quiet is given: leave it out"},
    {"hosts hostfile hosts-file nnodes num-nodes nodes machinefile",
     "a job on several hosts is started by cohort launch --hosts FILE -n N -- train ..."},
    {"distributed ddp multiprocessing-distributed data-parallel dp parallel",
     "several workers are --method all-reduce --workers N"},
    {"compile jit torch-compile", "there is nothing to compile: leave it out"},
    {"no-cuda no-gpu cpu", "the CPU is what is used unless --device says otherwise: leave it out"},
};

std::string plain(std::string_view word) {
  std::string text = lower(std::string(word));
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool has_word(std::string_view line, const std::string& word) {
  const std::vector<std::string> words = split(line, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::string same_meaning(std::string_view word, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return std::string(word);
  const std::string wanted = plain(word);
  for (const std::string& name : known) {
    if (plain(name) == wanted) return name;
  }
  for (const std::string_view meaning : kMeanings) {
    if (!has_word(meaning, wanted)) continue;
    for (const std::string& other : split(meaning, ' ')) {
      for (const std::string& name : known) {
        if (plain(name) == other) return name;
      }
    }
  }
  return "";
}

std::string nearest_meaning(std::string_view word, const std::vector<std::string>& known) {
  for (const Nearest& nearest : kNearest) {
    if (!has_word(nearest.words, plain(word))) continue;
    for (const std::string& name : known) {
      if (plain(name) == nearest.name) return name;
    }
  }
  return "";
}

std::string advice_instead_of(std::string_view word) {
  for (const Advice& advice : kAdvice) {
    if (has_word(advice.words, plain(word))) return std::string(advice.text);
  }
  return "";
}

}  // namespace cohort::config
