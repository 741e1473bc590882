#include "dialects/dist_train_arguments.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>

namespace cohort::dialects {
namespace {

// In which of the three programs a flag is.
constexpr unsigned kA = 1;  // 2018
constexpr unsigned kB = 2;  // 2018-10
constexpr unsigned kC = 4;  // 2019

std::string as_python(bool value) { return value ? "True" : "False"; }
std::string as_python(const std::string& value) { return value.empty() ? "None" : value; }
std::string as_python(std::int64_t value) { return fmt::format("{}", value); }
std::string as_python(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}
template <class Value>
std::string as_python(const std::optional<Value>& value) {
  return value ? as_python(*value) : "None";
}

struct Argument {
  const char* name;
  unsigned programs;
  std::function<std::string(const DistTrainFlags&)> text;
};

template <auto kMember>
std::string text_of(const DistTrainFlags& flags) {
  return as_python(flags.*kMember);
}

std::string on_gpu(const DistTrainFlags& flags) { return as_python(flags.device == "GPU"); }
// Not given, they are as many as the machine has cores, where that is worth it.
std::string threads(const DistTrainFlags& flags) {
  return flags.cpus ? as_python(*flags.cpus) : "auto";
}
std::string not_split(const DistTrainFlags& flags) { return as_python(!flags.split_var); }

// Sorted by name, as the program prints them.
const std::vector<Argument>& arguments() {
  using F = DistTrainFlags;
  static const std::vector<Argument> table = {
      {"async_mode", kA | kB | kC, text_of<&F::async_mode>},
      {"batch_size", kA | kB | kC, text_of<&F::batch_size>},
      {"checkpoint", kC, text_of<&F::checkpoint>},
      {"class_dim", kC, text_of<&F::class_dim>},
      {"cpus", kA | kB, threads},
      {"data_dir", kA | kB | kC, text_of<&F::data_dir>},
      {"data_format", kA | kB, text_of<&F::data_format>},
      {"data_set", kA, text_of<&F::data_set>},
      {"device", kA | kB, text_of<&F::device>},
      {"enable_ce", kC, text_of<&F::enable_ce>},
      {"enable_dgc", kC, text_of<&F::enable_dgc>},
      {"enable_sequential_execution", kC, text_of<&F::enable_sequential_execution>},
      {"fp16", kC, text_of<&F::fp16>},
      {"gpus", kA | kB, text_of<&F::gpus>},
      {"image_shape", kC, text_of<&F::image_shape>},
      {"iterations", kA, text_of<&F::iterations>},
      {"learning_rate", kA | kB, text_of<&F::learning_rate>},
      {"lr", kC, text_of<&F::learning_rate>},
      {"lr_strategy", kC, text_of<&F::lr_strategy>},
      {"memory_optimize", kA | kB, text_of<&F::memory_optimize>},
      {"model", kA | kB | kC, text_of<&F::model>},
      {"model_category", kC, text_of<&F::model_category>},
      {"model_save_dir", kC, text_of<&F::model_save_dir>},
      {"multi_batch_repeat", kB | kC, text_of<&F::multi_batch_repeat>},
      {"no_random", kA, text_of<&F::no_random>},
      {"no_split_var", kA | kB, not_split},
      {"no_test", kA | kB, text_of<&F::no_test>},
      {"num_epochs", kC, text_of<&F::pass_num>},
      {"num_threads", kC, threads},
      {"pass_num", kA | kB, text_of<&F::pass_num>},
      {"pretrained_model", kC, text_of<&F::pretrained_model>},
      {"rampup_begin_step", kC, text_of<&F::rampup_begin_step>},
      {"reduce_master_grad", kC, text_of<&F::reduce_master_grad>},
      {"reduce_strategy", kA | kB | kC, text_of<&F::reduce_strategy>},
      {"scale_loss", kC, text_of<&F::scale_loss>},
      {"skip_batch_num", kA, text_of<&F::skip_batch_num>},
      {"split_var", kC, text_of<&F::split_var>},
      {"start_test_pass", kC, text_of<&F::start_test_pass>},
      {"total_images", kC, text_of<&F::total_images>},
      {"update_method", kA | kB | kC, text_of<&F::update_method>},
      {"use_gpu", kC, on_gpu},
      {"with_mem_opt", kC, text_of<&F::memory_optimize>},
  };
  return table;
}

bool was_given(const DistTrainFlags& flags, const std::string& name) {
  return std::find(flags.given.begin(), flags.given.end(), name) != flags.given.end();
}

template <class Value>
void fill(std::optional<Value>& value, const Value& otherwise) {
  if (!value) value = otherwise;
}

}  // namespace

PaddleRevision paddle_revision(const DistTrainFlags& flags) {
  if (flags.like == "2018") return PaddleRevision::kPublished;
  if (flags.like == "2018-10") return PaddleRevision::kBatchMerge;
  if (flags.like == "2019") return PaddleRevision::kLater;
  bool merging =
      flags.model == "DistResNet" || flags.model == "DistResnet" || flags.model == "dist_resnet50";
  for (const Argument& argument : arguments()) {
    if (!was_given(flags, argument.name)) continue;
    if (argument.programs == kC) return PaddleRevision::kLater;
    if (argument.programs == (kB | kC)) merging = true;
  }
  return merging ? PaddleRevision::kBatchMerge : PaddleRevision::kPublished;
}

DistTrainFlags with_defaults(DistTrainFlags flags) {
  switch (paddle_revision(flags)) {
    case PaddleRevision::kPublished:
      fill<std::string>(flags.model, "ResNet50");
      fill<std::int64_t>(flags.batch_size, 32);
      fill(flags.learning_rate, 0.001);
      fill<std::int64_t>(flags.pass_num, 100);
      fill<std::int64_t>(flags.iterations, 80);
      fill<std::int64_t>(flags.skip_batch_num, 5);
      fill<std::string>(flags.data_set, "flowers");
      break;
    case PaddleRevision::kBatchMerge:
      fill<std::string>(flags.model, "DistResNet");
      fill<std::int64_t>(flags.batch_size, 32);
      fill(flags.learning_rate, 0.1);
      fill<std::int64_t>(flags.pass_num, 90);
      break;
    case PaddleRevision::kLater:
      fill<std::string>(flags.model, "DistResNet");
      fill<std::int64_t>(flags.batch_size, 256);
      fill(flags.learning_rate, 0.1);
      fill<std::int64_t>(flags.pass_num, 120);
      fill<std::int64_t>(flags.total_images, 1'281'167);
      fill<std::int64_t>(flags.class_dim, 1000);
      break;
  }
  fill<std::int64_t>(flags.iterations, 0);
  fill<std::int64_t>(flags.skip_batch_num, 0);
  fill<std::string>(flags.data_set, "imagenet");
  flags.data_dir = paddle_data_dir(flags);
  return flags;
}

std::string paddle_data_dir(const DistTrainFlags& flags) {
  if (flags.data_dir) return *flags.data_dir;
  return paddle_revision(flags) == PaddleRevision::kLater ? "./data/ILSVRC2012"
                                                          : "../data/ILSVRC2012";
}

std::vector<std::string> dist_train_opening(const DistTrainFlags& flags,
                                            const Variables& variables) {
  const PaddleRevision revision = paddle_revision(flags);
  const bool later = revision == PaddleRevision::kLater;
  const unsigned program = later ? kC : revision == PaddleRevision::kBatchMerge ? kB : kA;
  const DistTrainFlags filled = with_defaults(flags);
  std::vector<std::string> lines = {later ? "-------------  Configuration Arguments -------------"
                                          : "----------- Configuration Arguments -----------"};
  for (const Argument& argument : arguments()) {
    if ((argument.programs & program) == 0 && !was_given(flags, argument.name)) continue;
    const std::string text = argument.text(filled);
    lines.push_back(later ? fmt::format("{:>25} : {}", argument.name, text)
                          : fmt::format("{}: {}", argument.name, text));
  }
  lines.emplace_back(later ? "----------------------------------------------------"
                           : "------------------------------------------------");
  lines.emplace_back("----------- Configuration envs -----------");
  for (const auto& [name, value] : variables) {
    if (name.find("PADDLE_") == std::string::npos) continue;
    lines.push_back(fmt::format("ENV {}:{}", name, value));
  }
  lines.emplace_back("------------------------------------------------");
  return lines;
}

}  // namespace cohort::dialects
