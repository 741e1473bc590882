#include "dialects/choco.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "dialects/choco_rate.h"
#include "methods/method_traits.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

constexpr std::int64_t kMaxFlag = 1'000'000'000;
constexpr std::int64_t kKeepAll = 1'000'000;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// "resnet20" without its beginning as a number; nothing when that is none.
std::optional<std::int64_t> depth_in(const std::string& arch, const std::string& family) {
  if (!arch.starts_with(family)) return std::nullopt;
  const std::string digits = arch.substr(family.size());
  if (digits.empty() || digits.size() > 5 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoll(digits);
}

// Builds a translation; one object per call.
class ChocoTranslator {
 public:
  ChocoTranslator(ChocoFlags& flags, const ChocoSurroundings& around, const std::string& like,
                  std::string engine)
      : flags_(flags), around_(around), engine_(std::move(engine)) {
    result_.revision = choco_revision(flags, like);
  }

  ChocoTranslation run() {
    refuse_what_is_not_here();
    set_workers();
    set_method();
    set_compression();
    set_data();
    set_model();
    set_length();
    set_optimizer();
    set_choco_rate(flags_, result_.revision, config());
    set_evaluation();
    set_records();
    set_device();
    set_engine();
    methods::check_config(config());
    note_unread();
    return std::move(result_);
  }

 private:
  config::RunConfig& config() { return result_.config; }
  void note(std::string line) { result_.notes.push_back(std::move(line)); }

  void refuse(bool asked, const std::string& flag, const std::string& why) const {
    if (asked) throw ConfigError("--" + flag + ": " + why);
  }

  void refuse_what_is_not_here() {
    refuse(flags_.given("comm_algo"), "comm_algo",
           "it did nothing in the original; --optimizer and --graph_topology say who sends what to "
           "whom");
    refuse(flags_.given("local_adam_memory_treatment"), "local_adam_memory_treatment",
           "it did nothing in the original and nothing says what it should do: leave it out");
    refuse(flags_.given("local_rank"), "local_rank",
           "processes learn their ranks from mpirun: leave it out");
    refuse(flags_.given("checkpoint_index"), "checkpoint_index",
           "a run goes on from its newest checkpoint: leave it out");
    refuse(flags_.given("remote_exec") && flags_.truth("remote_exec"), "remote_exec",
           "jobs are not started through tmux: --hostfile names the hosts, which mpirun reaches by "
           "ssh");
    refuse(flags_.given("use_lmdb_data") && flags_.truth("use_lmdb_data"), "use_lmdb_data",
           "data sets are read from their own files: leave it out");
    refuse(flags_.given("clean_python") && flags_.truth("clean_python"), "clean_python",
           "it killed all Python processes of the hosts; here a job's processes end with it");
    refuse(
        flags_.given("turn_on_local_step_from") &&
            flags_.whole("turn_on_local_step_from", 0, kMaxFlag) > 0,
        "turn_on_local_step_from",
        "--local_step holds from the beginning: train the first epochs as a run of its own, then "
        "resume it");
  }

  void set_workers() {
    const std::int64_t nodes = flags_.given("n_mpi_process") || around_.processes == 1
                                   ? flags_.whole("n_mpi_process", 1, 65536)
                                   : around_.processes;
    const std::int64_t on_node = flags_.whole("n_sub_process", 1, 1024);
    config().workers = nodes * on_node;
    config().batch = flags_.whole("batch_size", 1, 1 << 24);
    several_on_node_ = on_node > 1;
  }

  void set_method() {
    const std::map<std::string, std::string>& names = choco_methods();
    const std::string optimizer = flags_.text("optimizer");
    const auto found = names.find(optimizer);
    if (found == names.end()) {
      std::vector<std::string> known;
      for (const auto& entry : names) known.push_back(entry.first);
      throw ConfigError(unknown_name("--optimizer", optimizer, known));
    }
    const std::string topology = find_topology();
    config().method = found->second;
    if (found->second.empty()) {
      config().optimizer = optimizer;
      config().method = topology == "complete" ? "all-reduce" : "d-psgd";
      if (config().workers == 1) config().method = "local";
    }
    if (uses("topology")) {
      config().topology = topology;
      config().overlap = !found->second.empty();
      if (several_on_node_) {
        note(
            fmt::format("each of the {} GPUs is a worker of the graph; in the original those of a "
                        "node were one",
                        config().workers));
      }
    } else if (sends_to_all() && topology != "complete") {
      note("--graph_topology " + flags_.text("graph_topology") + ": with --optimizer " + optimizer +
           " all workers exchange with all, as in the original; there the graph still set the "
           "learning rate's scale (neighbours and itself), which is --lr_scaleup_factor N here");
    }
    if (uses("consensus-stepsize")) set_stepsize();
    if (uses("estimates-start")) config().estimates_start = flags_.text("estimates_start");
    if (uses("majority-vote")) set("majority-vote", flags_.truth("majority_vote"));
    if (flags_.given("local_step") && uses("average-every")) {
      set("average-every", flags_.whole("local_step", 1, kMaxFlag));
    }
  }

  void set(const char* setting, config::SettingValue value) {
    methods::set_setting(config(), setting, std::move(value));
  }
  bool uses(const char* setting) { return methods::uses(config().method, setting); }

  // Whether all workers send each other compressed gradients, whatever the graph.
  bool sends_to_all() { return methods::traits_of(config().method).own_state && !uses("topology"); }

  // --optimizer sgd and the like: how workers exchange follows from the graph.
  bool names_no_method() const { return choco_methods().at(flags_.text("optimizer")).empty(); }

  std::string find_topology() {
    const std::string written = flags_.text("graph_topology");
    std::string name = dashed(written);
    if (name == "data-center") {
      throw ConfigError(
          "--graph_topology data_center stands in an example of the original, which has no such "
          "graph; star (all through one) and complete (all with all) come near");
    }
    if (contains(around_.topologies, name) && name != "edges") return name;
    throw ConfigError(unknown_name("--graph_topology", written, around_.topologies));
  }

  void set_stepsize() {
    const std::string text = flags_.text("consensus_stepsize");
    if (text != "auto") static_cast<void>(flags_.number("consensus_stepsize", 1e-9, 1));
    config().consensus_stepsize = text;
  }

  void set_compression() {
    const bool signs = sends_to_all() && !uses("compressor");
    const bool clips = uses("clip-tensor");  // dgc
    const std::string op = choco_compressor(flags_.text("comm_op"));
    if (signs && !op.empty() && op != "sign") {
      throw ConfigError("--optimizer " + flags_.text("optimizer") +
                        " sends signs: leave out --comm_op " + flags_.text("comm_op"));
    }
    if (clips) set_dgc();
    if (clips && op != "top-k" && op != "random-k" && op != "qsgd") {
      throw ConfigError("--optimizer dgc needs --comm_op compress_top_k, compress_random_k or " +
                        ("quantize_qsgd, not " + (op.empty() ? "None" : flags_.text("comm_op"))) +
                        (op == "sign" ? ": use --optimizer ef_sign_sgd" : ""));
    }
    // Without a method of its own the original sends whole models.
    if (!uses("compressor") || names_no_method() || op.empty()) return;
    if (op == "top-k" || op == "random-k") {
      set_sparse(op == "top-k");
    } else if (op == "qsgd") {
      set_quantized();
    } else {
      config().compressor = op;
    }
  }

  void set_sparse(bool largest) {
    config().compressor = largest ? "top-k" : "random-k";
    if (!flags_.given("compress_ratio")) {
      throw ConfigError("--comm_op " + flags_.text("comm_op") +
                        " needs --compress_ratio: the share that is dropped, such as 0.99");
    }
    config().compress_ratio = flags_.number("compress_ratio", 0, 0.9999999);
    if (largest) return;
    // The original never scaled what it drew, whatever the flag said.
    config().biased = true;
    if (flags_.given("is_biased") && !flags_.truth("is_biased")) {
      note("--is_biased False: what is drawn is not scaled up by n/k, as in the original");
    }
  }

  void set_quantized() {
    if (!flags_.given("quantize_level")) {
      throw ConfigError(
          "--comm_op quantize_qsgd needs --quantize_level: bits, from 1 to 16, or 32");
    }
    if (flags_.text("quantize_level") == "32") return;  // all of them: nothing to compress
    config().compressor = "qsgd";
    config().quantize_bits = flags_.whole("quantize_level", 1, 16);
    config().biased = flags_.truth("is_biased");
    if (uses("consensus-stepsize") && flags_.given("is_biased") && !config().biased) {
      note("--is_biased False: what is sent is shrunk all the same; what is fed back would grow");
    }
  }

  void set_dgc() {
    set("mask-momentum", flags_.truth("mask_momentum"));
    const std::int64_t epochs = flags_.whole("compress_warmup_epochs", 0, kMaxFlag);
    if (epochs == 0) return;
    set("compress-warmup-epochs", static_cast<double>(epochs));
    set("compress-warmup-values", flags_.numbers("compress_warmup_values"));
  }

  void set_data() {
    static const std::map<std::string, std::string> names = {{"cifar10", "cifar-10"},
                                                             {"cifar100", "cifar-100"},
                                                             {"imagenet", "image-folder"},
                                                             {"wikitext2", "wikitext-2"}};
    const std::string written = flags_.text("data");
    const auto found = names.find(written);
    const std::string name = found == names.end() ? dashed(written) : found->second;
    if (!contains(around_.data_sets, name)) {
      throw ConfigError("--data " + written + " is not here. There are: cifar10, cifar100, " +
                        "imagenet (train/<class>/ and val/<class>/), wikitext2, " +
                        join(around_.data_sets, ", "));
    }
    config().data = name;
    config().data_dir = flags_.text("data_dir");
    config().loader_threads = flags_.whole("num_workers", 0, 256);
    config().seed = flags_.whole("manual_seed", 0, kMaxFlag * kMaxFlag);
    // Text is divided in one way: every worker has columns of its own.
    if (name != "wikitext-2" && name != "ptb" && name != "text") set_partition();
  }

  void set_partition() {
    const std::string partition = flags_.text("partition_data");
    if (!partition.empty() && partition != "random" && partition != "sorted") {
      throw ConfigError("--partition_data takes random, sorted or None, got '" + partition + "'");
    }
    if (!partition.empty()) config().partition = partition;
    if (partition == "random") config().reshuffle = flags_.truth("reshuffle_per_epoch");
  }

  void set_model() {
    const std::string arch = flags_.text("arch");
    if (arch == "rnn_lm") {
      set_language_model();
    } else if (const auto depth = depth_in(arch, "densenet"); depth && *depth != 121) {
      config().model = "densenet";
      config().depth = *depth;
      config().growth = flags_.whole("densenet_growth_rate", 1, 1000);
      refuse(flags_.truth("densenet_bc_mode"), "densenet_bc_mode",
             "the densenet here has no bottlenecks: leave it out");
      refuse(flags_.number("densenet_compression", 0, 1) != 0.5, "densenet_compression",
             "transitions halve the channels: give 0.5");
    } else if (const auto wide = depth_in(arch, "wideresnet")) {
      config().model = "wideresnet";
      config().depth = *wide;
      config().widen = flags_.whole("wideresnet_widen_factor", 1, 1000);
    } else if (arch == "mlp") {
      config().model = "mlp-100";
      note("--arch mlp, which could not be built in the original, is mlp-100: one layer of 100");
    } else if (contains(around_.models, arch)) {
      config().model = arch;
    } else {
      throw ConfigError(unknown_name("--arch", arch, around_.models));
    }
    const std::vector<std::string> with_dropout = {"densenet", "wideresnet", "lstm"};
    if (contains(with_dropout, config().model)) {
      config().dropout = flags_.number("drop_rate", 0, 0.999);
    }
  }

  void set_language_model() {
    config().model = "lstm";
    config().rnn_hidden = flags_.whole("rnn_n_hidden", 1, 100'000);
    config().rnn_layers = flags_.whole("rnn_n_layers", 1, 1000);
    config().bptt = flags_.whole("rnn_bptt_len", 1, 1'000'000);
    config().tie_weights = flags_.truth("rnn_tie_weights");
    config().clip_norm = flags_.number("rnn_clip", 0, 1e30);
    refuse(flags_.truth("rnn_weight_norm"), "rnn_weight_norm",
           "the weights of the lstm here are not normalised: leave it out");
    refuse(flags_.given("rnn_use_pretrained_emb") && flags_.truth("rnn_use_pretrained_emb"),
           "rnn_use_pretrained_emb",
           "words begin with random vectors: give False; weights of your own come by `cohort train "
           "--init`");
  }

  void set_length() {
    const std::string criterion = flags_.text("stop_criteria");
    config().epochs = flags_.whole("num_epochs", 1, kMaxFlag);
    if (criterion == "epoch") return;
    if (criterion != "iteration") {
      throw ConfigError("--stop_criteria takes epoch or iteration, got '" + criterion + "'");
    }
    const std::int64_t all = flags_.whole("num_iterations", 1, kMaxFlag * 1000);
    config().iterations = all / config().workers;
    if (config().iterations == 0) {
      throw ConfigError(fmt::format("--num_iterations {} are those of all {} workers together", all,
                                    config().workers));
    }
  }

  void set_optimizer() {
    if (config().optimizer == "sgd") {
      config().momentum = flags_.number("momentum_factor", 0, 0.999999);
      config().nesterov = flags_.truth("use_nesterov");
    } else {
      config().beta1 = flags_.number("adam_beta_1", 0, 0.999999);
      config().beta2 = flags_.number("adam_beta_2", 0, 0.9999999);
      config().epsilon = flags_.number("adam_eps", 1e-30, 1);
    }
    config().weight_decay = flags_.number("weight_decay", 0, 1e3);
    config().no_norm_decay = true;
    if (!flags_.truth("clip_grad")) return;
    if (!flags_.given("clip_grad_val")) {
      throw ConfigError("--clip_grad True needs --clip_grad_val: the longest gradient");
    }
    const double longest = flags_.number("clip_grad_val", 1e-30, 1e30);
    if (uses("clip-tensor")) {
      set("clip-tensor", longest);
    } else {
      config().clip_norm = longest;
    }
  }

  void set_evaluation() {
    const bool gossip = uses("topology");
    const bool fast = flags_.truth("train_fast");
    config().eval_workers = gossip && !fast;
    config().eval_every = flags_.whole("eval_freq", 1, kMaxFlag);
    if (fast) config().checkpoint_every = kMaxFlag;
    if (flags_.given("evaluate_consensus")) check_consensus(gossip);
    // What they ask for is done always.
    for (const char* flag : {"avg_model", "evaluate_avg"}) {
      if (!flags_.given(flag) || flags_.truth(flag) || !gossip) continue;
      note(fmt::format("--{} False: the average of all models is tested all the same", flag));
    }
  }

  void check_consensus(bool gossip) {
    std::string text = flags_.text("evaluate_consensus");
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    const bool train = text.find("train") != std::string::npos;
    if (!train && text.find("val") == std::string::npos) {
      const bool asked = flags_.truth("evaluate_consensus");
      if (!asked && gossip) {
        note("--evaluate_consensus False: the average of all models is tested all the same");
      }
    }
    if (train) note("--evaluate_consensus train: models are tested on the test set alone");
  }

  void set_records() {
    config().record_every = flags_.whole("summary_freq", 1, kMaxFlag);
    const bool detailed = flags_.truth("track_detailed_time");
    result_.track_time = flags_.truth("track_time") || detailed;
    result_.display_time = flags_.truth("display_tracked_time");
    if (flags_.truth("save_all_models")) config().keep = kKeepAll;
    if (!flags_.text("save_some_models").empty() && config().keep != kKeepAll) {
      config().keep = kKeepAll;
      note("--save_some_models: the checkpoints of all epochs are kept");
    }
    result_.work_dir = flags_.text("work_dir");
    result_.runs_dir = flags_.text("checkpoint");
    result_.resume = flags_.text("resume");
    result_.evaluate = flags_.truth("evaluate");
    if (result_.evaluate && result_.resume.empty()) {
      throw ConfigError("--evaluate tests a trained model: give --resume and its run's folder");
    }
    result_.name = flags_.text("experiment");
    const std::string stamp = flags_.text("timestamp");
    if (!stamp.empty()) result_.name += (result_.name.empty() ? "" : "_") + stamp;
  }

  void set_device() {
    if (!flags_.truth("on_cuda")) return;
    if (around_.gpus == 0) {
      note("no GPU here: training on the CPU (--on_cuda False asks for that)");
      return;
    }
    config().device = "cuda";
    if (!flags_.given("world")) return;
    std::vector<std::string> gpus = split(flags_.text("world"), ',');
    const auto workers = static_cast<std::size_t>(config().workers);
    if (gpus.size() < workers) {
      throw ConfigError(fmt::format("--world names {} GPUs for {} workers", gpus.size(), workers));
    }
    gpus.resize(workers);
    config().world = join(gpus, ",");
  }

  void set_engine() {
    const std::string backend = flags_.text("backend");
    const std::vector<std::string> backends = {"mpi", "nccl", "gloo"};
    if (!contains(backends, backend)) {
      throw ConfigError(unknown_name("--backend", backend, backends));
    }
    if (backend != "mpi" && config().workers > 1 && around_.processes == 1 && engine_ == "auto") {
      note("--backend " + backend + ": the workers are threads of this process");
    }
    const bool asks_mpi = flags_.given("hostfile") || (flags_.given("backend") && backend == "mpi");
    if (around_.processes > 1) {
      config().engine = engine_;
      static_cast<void>(flags_.text("hostfile"));  // mpirun has had it
      return;
    }
    if (engine_ == "mpi" || (engine_ == "auto" && asks_mpi && config().workers > 1)) {
      launch();
    } else {
      config().engine = engine_ == "auto" ? "threads" : engine_;
    }
  }

  void launch() {
    if (!contains(around_.engines, "mpi")) {
      throw ConfigError(
          "this program was built without MPI, which --hostfile and --backend mpi ask for: give "
          "--engine threads");
    }
    config().engine = "mpi";
    result_.launch = ChocoLaunch{static_cast<int>(config().workers), flags_.text("hostfile")};
  }

  void note_unread() {
    const std::vector<std::string> unread = flags_.unread();
    if (unread.empty()) return;
    note(fmt::format("without effect on this run: --{} (docs/choco.md says why)",
                     join(unread, ", --")));
  }

  ChocoFlags& flags_;
  const ChocoSurroundings& around_;
  const std::string engine_;
  bool several_on_node_ = false;
  ChocoTranslation result_;
};

}  // namespace

ChocoRevision choco_revision(const ChocoFlags& flags, const std::string& like) {
  if (like == "early") return ChocoRevision::kEarly;
  if (like == "late") return ChocoRevision::kLate;
  if (like != "auto") throw ConfigError("--like takes auto, early or late, got '" + like + "'");
  const auto first_given = [&](const std::vector<std::string>& names) {
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const auto& name) { return flags.given(name); });
    return found == names.end() ? std::string() : *found;
  };
  const std::string early = first_given({"lr_scheduler", "lr_milestones", "lr_patience",
                                         "lr_scaleup_init_lr", "lr_warmup_epochs_upper_bound"});
  const std::string late = first_given(
      {"lr_schedule_scheme", "lr_change_epochs", "lr_fields", "lr_scale_indicators",
       "lr_scaleup_type", "lr_onecycle_low", "lr_onecycle_high", "lr_onecycle_extra_low",
       "lr_onecycle_num_epoch", "lr_gamma", "lr_mu", "lr_alpha", "eval_freq", "evaluate_avg"});
  if (!early.empty() && !late.empty()) {
    throw ConfigError("--" + early + " is of the early program, --" + late +
                      " of the late one: leave one out, or say which with --like early or late");
  }
  return early.empty() ? ChocoRevision::kLate : ChocoRevision::kEarly;
}

ChocoTranslation translate(ChocoFlags flags, const ChocoSurroundings& around,
                           const std::string& like, const std::string& engine) {
  return ChocoTranslator(flags, around, like, engine).run();
}

}  // namespace cohort::dialects
