#include "dialects/choco_flags.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "core/error.h"
#include "core/text.h"

namespace cohort::dialects {
namespace {

using Kind = ChocoFlag::Kind;

const ChocoFlag& flag_named(const std::string& name) {
  for (const ChocoFlag& flag : choco_flags()) {
    if (flag.name == name) return flag;
  }
  std::vector<std::string> known;
  for (const ChocoFlag& flag : choco_flags()) known.push_back(flag.name);
  throw ConfigError(unknown_name("flag", name, known));
}

double parse_number(const std::string& flag, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc{} && parsed.ptr == end && std::isfinite(value)) return value;
  throw ConfigError(fmt::format("--{} takes a number, got '{}'", flag, text));
}

std::vector<ChocoFlag> flags_of_data_and_length() {
  return {
      {"work_dir", Kind::kText, "", "folder to work in"},
      {"remote_exec", Kind::kTruth, "False", "refused when True: --hostfile names the hosts"},
      {"data", Kind::kText, "cifar10", "cifar10, cifar100, mnist, imagenet, or one of ours"},
      {"data_dir", Kind::kText, "", "where the data are [the usual places]"},
      {"use_lmdb_data", Kind::kTruth, "False", "refused when True: files are read as they are"},
      {"partition_data", Kind::kText, "", "random, sorted, or None: each batch anew"},
      {"pin_memory", Kind::kTruth, "True", "no effect"},
      {"arch", Kind::kText, "resnet20", "resnet20, densenet40, wideresnet28, vgg16, lenet, ...",
       "a"},
      {"train_fast", Kind::kTruth, "False",
       "no checkpoint every epoch, only the average is tested"},
      {"stop_criteria", Kind::kText, "epoch", "epoch or iteration"},
      {"num_epochs", Kind::kWhole, "90", "passes over the training set"},
      {"num_iterations", Kind::kWhole, "32000", "steps of all workers together"},
      {"avg_model", Kind::kTruth, "False", "always so: the average of all models is tested"},
      {"reshuffle_per_epoch", Kind::kTruth, "False", "a random partition is drawn every epoch"},
      {"batch_size", Kind::kWhole, "256", "samples a step of one worker (GPU)", "b"},
      {"base_batch_size", Kind::kWhole, "", "batch that --lr was tuned for [batch_size]"},
  };
}

std::vector<ChocoFlag> flags_of_rate() {
  return {
      {"lr", Kind::kNumber, "0.01", "learning rate for base_batch_size"},
      {"lr_schedule_scheme", Kind::kText, "",
       "late: strict, custom_one_cycle, custom_multistep or custom_convex_decay"},
      {"lr_change_epochs", Kind::kNumbers, "", "late: epochs at which the rate changes"},
      {"lr_fields", Kind::kText, "", "late, strict: rates from,to/from,to"},
      {"lr_scale_indicators", Kind::kNumbers, "", "late, strict: 0 linear, 1 poly, 2 convex"},
      {"lr_scaleup", Kind::kTruth, "False", "scale by lr_scaleup_factor"},
      {"lr_scaleup_type", Kind::kText, "linear", "late: linear or sqrt"},
      {"lr_scaleup_factor", Kind::kText, "",
       "graph, world or a number [late: graph, early: world]"},
      {"lr_scaleup_init_lr", Kind::kNumber, "", "early: rate the warm-up begins with [lr]"},
      {"lr_warmup", Kind::kTruth, "False", "climb to the scaled rate"},
      {"lr_warmup_epochs", Kind::kWhole, "", "over this many epochs [late: 5, early: the factor]"},
      {"lr_warmup_epochs_upper_bound", Kind::kWhole, "150", "early: at most so many"},
      {"lr_scheduler", Kind::kText, "MultiStepLR", "early: MultiStepLR or ExponentialLR"},
      {"lr_milestones", Kind::kNumbers, "", "early: epochs at which the rate changes"},
      {"lr_decay", Kind::kNumber, "", "late: divisor [10]; early: factor [0.1]"},
      {"lr_patience", Kind::kWhole, "10", "no effect, as in the original"},
      {"lr_onecycle_low", Kind::kNumber, "0.15", "one cycle: first rate"},
      {"lr_onecycle_high", Kind::kNumber, "3", "one cycle: highest rate"},
      {"lr_onecycle_extra_low", Kind::kNumber, "0.0015", "one cycle: last rate"},
      {"lr_onecycle_num_epoch", Kind::kWhole, "46", "one cycle: epochs up and down"},
      {"lr_gamma", Kind::kNumber, "", "convex: gamma / (mu (alpha + epoch))"},
      {"lr_mu", Kind::kNumber, "", "convex: mu"},
      {"lr_alpha", Kind::kNumber, "", "convex: alpha"},
  };
}

std::vector<ChocoFlag> flags_of_exchange() {
  return {
      {"optimizer", Kind::kText, "sgd",
       "sgd, dgc, dcd_psgd, ecd_psgd, parallel_choco, parallel_choco_v, ef_sign_sgd, sign_sgd, "
       "deep_squeeze; ours: adam, adamw"},
      {"adam_beta_1", Kind::kNumber, "0.9", "of adam"},
      {"adam_beta_2", Kind::kNumber, "0.999", "of adam"},
      {"adam_eps", Kind::kNumber, "1e-8", "of adam"},
      {"graph_topology", Kind::kText, "complete",
       "complete, ring, torus, expander, margulis_expander, social, or one of ours"},
      {"comm_algo", Kind::kText, "", "refused: --optimizer says it"},
      {"comm_op", Kind::kText, "",
       "compress_top_k, compress_random_k, quantize_qsgd or sign; also as the guide writes them: "
       "top-k, random-k, sign+norm"},
      {"compress_ratio", Kind::kNumber, "", "share of the elements that is dropped"},
      {"compress_warmup_values", Kind::kNumbers, "0.75,0.9375,0.984375,0.996,0.999",
       "dgc: ratios of the warm-up"},
      {"compress_warmup_epochs", Kind::kWhole, "0", "dgc: epochs of the warm-up"},
      {"quantize_level", Kind::kWhole, "", "qsgd: bits, 1 to 16; 32: no compression"},
      {"is_biased", Kind::kTruth, "False", "qsgd, random-k: shrunk rather than right on average"},
      {"majority_vote", Kind::kTruth, "False", "sign_sgd: sign of the sum"},
      {"consensus_stepsize", Kind::kText, "0.9", "gamma, above 0 up to 1; ours: auto"},
      {"estimates_start", Kind::kText, "model",
       "ours; parallel_choco: estimates begin at the model, or at zero as in the original"},
      {"evaluate_consensus", Kind::kText, "",
       "True, val or train,val: the average is tested always"},
      {"mask_momentum", Kind::kTruth, "False", "dgc: momentum of what was sent starts anew"},
      {"clip_grad", Kind::kTruth, "False", "limit gradients to clip_grad_val"},
      {"clip_grad_val", Kind::kNumber, "", "dgc: of each tensor; otherwise: of all together"},
      {"local_step", Kind::kWhole, "1", "steps between exchanges"},
      {"turn_on_local_step_from", Kind::kWhole, "0", "refused but for 0"},
      {"local_adam_memory_treatment", Kind::kText, "", "refused"},
      {"momentum_factor", Kind::kNumber, "0.9", "momentum"},
      {"use_nesterov", Kind::kTruth, "False", "Nesterov's form of it"},
      {"weight_decay", Kind::kNumber, "5e-4", "of all but batch normalisation"},
  };
}

std::vector<ChocoFlag> flags_of_models() {
  return {
      {"drop_rate", Kind::kNumber, "0", "dropout of densenet, wideresnet and rnn_lm"},
      {"densenet_growth_rate", Kind::kWhole, "12", "of densenet"},
      {"densenet_bc_mode", Kind::kTruth, "False", "refused when True"},
      {"densenet_compression", Kind::kNumber, "0.5", "refused but for 0.5"},
      {"wideresnet_widen_factor", Kind::kWhole, "4", "of wideresnet"},
      {"rnn_n_hidden", Kind::kWhole, "200", "rnn_lm: units of a layer"},
      {"rnn_n_layers", Kind::kWhole, "2", "rnn_lm: layers"},
      {"rnn_bptt_len", Kind::kWhole, "35", "rnn_lm: words of a row in a step"},
      {"rnn_clip", Kind::kNumber, "0.25", "rnn_lm: longest gradient; 0: no limit"},
      {"rnn_use_pretrained_emb", Kind::kTruth, "", "rnn_lm: refused when True"},
      {"rnn_tie_weights", Kind::kTruth, "True", "rnn_lm: one matrix for words in and out"},
      {"rnn_weight_norm", Kind::kTruth, "False", "rnn_lm: refused when True"},
  };
}

std::vector<ChocoFlag> flags_of_records() {
  return {
      {"manual_seed", Kind::kWhole, "6", "every random choice follows from it"},
      {"evaluate", Kind::kTruth, "False", "test the model of --resume, and end", "e"},
      {"eval_freq", Kind::kWhole, "1", "epochs between tests"},
      {"summary_freq", Kind::kWhole, "100", "steps between lines and timing tables"},
      {"timestamp", Kind::kText, "", "second part of the run's name"},
      {"track_time", Kind::kTruth, "False", "timings in log-1.json"},
      {"track_detailed_time", Kind::kTruth, "False", "the same"},
      {"display_tracked_time", Kind::kTruth, "False", "print the table of timings"},
      {"evaluate_avg", Kind::kTruth, "False", "always so: the average of all models is tested"},
      {"resume", Kind::kText, "", "go on with the run in this folder"},
      {"checkpoint", Kind::kText, "./data/checkpoint", "where run directories are made", "c"},
      {"checkpoint_index", Kind::kText, "", "refused: a run goes on where it ended"},
      {"save_all_models", Kind::kTruth, "False", "keep the checkpoint of every epoch"},
      {"save_some_models", Kind::kText, "", "the same"},
      {"user", Kind::kText, "", "no effect"},
      {"project", Kind::kText, "", "no effect"},
      {"experiment", Kind::kText, "", "name of the run's folder"},
  };
}

std::vector<ChocoFlag> flags_of_machines() {
  return {
      {"backend", Kind::kText, "mpi", "mpi: processes by mpirun; nccl, gloo: threads"},
      {"use_ipc", Kind::kTruth, "False", "no effect"},
      {"hostfile", Kind::kText, "", "lines `ip slots=k`: processes by mpirun on these"},
      {"mpi_path", Kind::kText, "", "no effect: mpirun is that of the PATH"},
      {"mpi_env", Kind::kText, "", "no effect"},
      {"python_path", Kind::kText, "", "no effect: there is no Python"},
      {"num_workers", Kind::kWhole, "4", "threads that read ahead, of each worker", "j"},
      {"n_mpi_process", Kind::kWhole, "1", "nodes"},
      {"n_sub_process", Kind::kWhole, "1", "GPUs of a node, each a worker"},
      {"world", Kind::kText, "", "GPU of each worker: 0,0,1,1"},
      {"on_cuda", Kind::kTruth, "True", "use GPUs where there are any"},
      {"comm_device", Kind::kText, "cuda",
       "no effect: workers that share a GPU exchange in its memory, others through the host's"},
      {"local_rank", Kind::kText, "", "refused: processes know their ranks"},
      {"clean_python", Kind::kTruth, "False", "refused when True: it killed processes"},
  };
}

}  // namespace

const std::vector<ChocoFlag>& choco_flags() {
  static const std::vector<ChocoFlag> table = [] {
    std::vector<ChocoFlag> all;
    for (const auto& part : {flags_of_data_and_length(), flags_of_rate(), flags_of_exchange(),
                             flags_of_models(), flags_of_records(), flags_of_machines()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return table;
}

std::vector<double> parse_choco_numbers(const std::string& flag, const std::string& text) {
  std::vector<double> values;
  if (text.empty()) return values;
  for (const std::string& part : split(text, ',')) values.push_back(parse_number(flag, part));
  return values;
}

ChocoFlags::ChocoFlags(const std::map<std::string, std::string>& given) {
  for (const auto& [name, value] : given) {
    static_cast<void>(flag_named(name));
    if (value != "None") given_[name] = value;
  }
}

std::string ChocoFlags::text(const std::string& name) {
  const ChocoFlag& flag = flag_named(name);
  read_.insert(name);
  const auto found = given_.find(name);
  return found == given_.end() ? flag.usual : found->second;
}

bool ChocoFlags::truth(const std::string& name) {
  const std::string written = text(name);
  std::string lower = written;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const char* yes : {"yes", "true", "t", "y", "1"}) {
    if (lower == yes) return true;
  }
  for (const char* no : {"no", "false", "f", "n", "0"}) {
    if (lower == no) return false;
  }
  throw ConfigError(fmt::format("--{} takes True or False, got '{}'", name, written));
}

std::int64_t ChocoFlags::whole(const std::string& name, std::int64_t low, std::int64_t high) {
  const std::string written = text(name);
  std::int64_t value = 0;
  const char* end = written.data() + written.size();
  const auto parsed = std::from_chars(written.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end) {
    throw ConfigError(fmt::format("--{} takes a whole number, got '{}'", name, written));
  }
  if (value < low || value > high) {
    throw ConfigError(fmt::format("--{} must be from {} to {}, got {}", name, low, high, value));
  }
  return value;
}

double ChocoFlags::number(const std::string& name, double low, double high) {
  const double value = parse_number(name, text(name));
  if (value >= low && value <= high) return value;
  throw ConfigError(fmt::format("--{} must be from {} to {}, got {}", name, low, high, value));
}

std::vector<double> ChocoFlags::numbers(const std::string& name) {
  return parse_choco_numbers(name, text(name));
}

std::vector<std::string> ChocoFlags::unread() const {
  std::vector<std::string> names;
  for (const ChocoFlag& flag : choco_flags()) {
    if (given(flag.name) && read_.count(flag.name) == 0) names.push_back(flag.name);
  }
  return names;
}

const std::map<std::string, std::string>& choco_methods() {
  static const std::map<std::string, std::string> names = {{"sgd", ""},
                                                           {"adam", ""},
                                                           {"adamw", ""},
                                                           {"dcd_psgd", "dcd"},
                                                           {"ecd_psgd", "ecd"},
                                                           {"parallel_choco", "choco"},
                                                           {"dgc", "dgc"},
                                                           {"sign_sgd", "sign-sgd"},
                                                           {"parallel_choco_v", "choco"},
                                                           {"ef_sign_sgd", "ef-sign"},
                                                           {"deep_squeeze", "deep-squeeze"}};
  return names;
}

const FlagNames& choco_flag_names() {
  static const FlagNames names = [] {
    std::vector<std::string> flags;
    for (const ChocoFlag& flag : choco_flags()) flags.push_back(flag.name);
    FlagNames result = flag_names_among(flags);
    result["method"] = "--optimizer";
    for (const auto& [optimizer, method] : choco_methods()) {
      if (!method.empty()) result.try_emplace("method " + method, "--optimizer " + optimizer);
    }
    return result;
  }();
  return names;
}

std::string choco_compressor(const std::string& operation) {
  static const std::map<std::string, std::string> names = {
      {"compress_top_k", "top-k"}, {"compress_random_k", "random-k"},
      {"quantize_qsgd", "qsgd"},   {"quantize", "qsgd"},
      {"sign+norm", "sign"},       {"top_k", "top-k"},
      {"random_k", "random-k"}};
  static const std::vector<std::string> own = {"top-k", "random-k", "qsgd", "sign",
                                               "none",  "fp16",     "bf16"};
  if (operation.empty() || std::find(own.begin(), own.end(), operation) != own.end())
    return operation;
  if (const auto found = names.find(operation); found != names.end()) return found->second;
  std::vector<std::string> known = own;
  for (const auto& [name, compressor] : names) known.push_back(name);
  throw ConfigError(unknown_name("--comm_op", operation, known));
}

}  // namespace cohort::dialects
