#include "dialects/imagenet.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/announcements.h"
#include "apps/checkpoint_choice.h"
#include "apps/command.h"
#include "apps/environment.h"
#include "apps/one_evaluation.h"
#include "apps/training.h"
#include "core/error.h"
#include "dialects/imagenet_progress.h"
#include "dialects/native_command.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "engine/run_directory.h"
#include "launch/environment.h"
#include "methods/settings.h"
#include "runs/run_files.h"

namespace cohort::apps {
namespace {

namespace fs = std::filesystem;

struct ImagenetCommand {
  explicit ImagenetCommand(CLI::App& app) : command(app) {
    add_what();
    add_how();
    add_where();
    app.add_option("--image-size", flags.image_size, "pixels a side of what the network sees")
        ->capture_default_str()
        ->group("Ours");
    app.add_option("--train-size", flags.train_size, "use only the first N training pictures")
        ->group("Ours");
    app.add_option("--test-size", flags.test_size, "use only the first N validation pictures")
        ->group("Ours");
    app.add_option("--runs-dir", runs_dir, "where run directories are made")
        ->capture_default_str()
        ->group("Ours");
    app.add_option("--name", name, "folder of this run below --runs-dir")->group("Ours");
    app.add_flag("--explain", explain, "print the same as a `cohort train` command, and end")
        ->group("Ours");
  }

  // The flags that were given, by their long names; "DIR" for the folder.
  std::vector<std::string> given() const {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
      if (option->count() == 0) continue;
      names.push_back(option->get_positional() ? "DIR" : option->get_lnames().front());
    }
    return names;
  }

  dialects::ImagenetFlags flags;
  std::string runs_dir = "runs";
  std::string name;
  bool explain = false;
  CLI::App& command;

 private:
  void add_what() {
    command.add_option("DIR", flags.folder, "has train/<class>/ and val/<class>/");
    command.add_option("-a,--arch", flags.arch, "network; see `cohort list models`")
        ->capture_default_str();
    command.add_flag("-e,--evaluate", flags.evaluate, "evaluate on val/ and end");
    command.add_flag("--pretrained", flags.pretrained,
                     "begin with ARCH.safetensors, from DIR or where data sets are");
    command.add_option("--resume", flags.resume, "go on with the run in this directory")
        ->type_name("PATH");
    command.add_flag("--dummy", flags.dummy, "generated pictures instead of DIR's");
  }

  void add_how() {
    command.add_option("--epochs", flags.epochs, "passes over train/")->capture_default_str();
    command.add_option("--start-epoch", flags.start_epoch, "number of the first epoch")
        ->capture_default_str();
    command.add_option("-b,--batch-size", flags.batch_size, "pictures a step, of one whole node")
        ->capture_default_str();
    command.add_option("--lr,--learning-rate", flags.lr, "tenth of it after every 30 epochs")
        ->capture_default_str();
    command.add_option("--momentum", flags.momentum, "of SGD")->capture_default_str();
    command.add_option("--weight-decay,--wd", flags.weight_decay, "of all parameters")
        ->capture_default_str();
    command.add_option("--seed", flags.seed, "every random choice follows from it; 1 if not given");
    command.add_option("-p,--print-freq", flags.print_freq, "steps between lines")
        ->capture_default_str();
    command.add_option("-j,--workers", flags.workers, "loader threads of one node")
        ->capture_default_str();
  }

  void add_where() {
    command.add_option("--gpu", flags.gpu, "train on this GPU alone");
    command.add_flag("--no-accel", flags.no_accel, "leave GPUs alone");
    command.add_flag("--multiprocessing-distributed", flags.multiprocessing_distributed,
                     "a worker for each GPU (without any: core), gradients all-reduced");
    command.add_option("--world-size", flags.world_size, "nodes")->capture_default_str();
    command.add_option("--rank", flags.rank, "of this node")->capture_default_str();
    command.add_option("--dist-url", flags.dist_url, "tcp://HOST:PORT, env:// or file://PATH")
        ->capture_default_str();
    command.add_option("--dist-backend", flags.dist_backend, "nccl, gloo or mpi")
        ->capture_default_str();
  }
};

std::optional<launch::Place> launched_place() { return launch::detect_place(launch::own_variable); }

// Of processes that a launcher of MPI jobs started; torchrun's connect by themselves.
launch::Place place_in_job() {
  const auto place = launched_place();
  return place && place->source != "torchrun" ? *place : launch::Place{};
}

int own_node(const dialects::Translation& translation) {
  return translation.nodes > 1 ? translation.node : place_in_job().rank;
}

std::optional<int> number_variable(const char* name, long least) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || number < least || number > 1'000'000) {
    throw ConfigError(fmt::format("{} must be a number from {}, it is '{}'", name, least, text));
  }
  return static_cast<int>(number);
}

std::string find_weights(const dialects::ImagenetFlags& flags) {
  data::SearchPath search = data_search_path();
  if (!flags.folder.empty()) search.insert(search.begin(), flags.folder);
  for (const fs::path& folder : search) {
    const fs::path file = folder / (flags.arch + ".safetensors");
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) return file.string();
  }
  return "";
}

dialects::Machine find_machine(const dialects::ImagenetFlags& flags) {
  dialects::Machine machine;
  machine.gpus = engine::cuda_device_count();
  machine.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  machine.processes = place_in_job().size;
  const auto place = launched_place();
  machine.torchrun = place && place->source == "torchrun" && place->size > 1;
  if (flags.dist_url == "env://" || machine.torchrun) {
    machine.world_size = number_variable("WORLD_SIZE", 1);
    machine.rank = number_variable("RANK", 0);
  }
  machine.models = models::models().names();
  if (flags.pretrained) machine.weights = find_weights(flags);
  return machine;
}

// What --resume names.
struct Resumed {
  bool missing = false;  // nothing is there: a new run, as the example does
  fs::path file = {};    // weights alone, for --evaluate
  fs::path run = {};     // a run directory
};

Resumed find_resumed(const dialects::ImagenetFlags& flags) {
  if (flags.resume.empty()) return {};
  const fs::path where = flags.resume;
  if (!fs::exists(where)) return {.missing = true};
  if (!fs::is_regular_file(where)) return {.run = run_of(where)};
  if (flags.evaluate && where.extension() == ".safetensors") return {.file = where};
  throw ConfigError(flags.resume +
                    " is a file: --resume takes a run directory, or with --evaluate a .safetensors "
                    "file; docs/imagenet.md shows how to make one of a checkpoint.pth.tar");
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : fs::absolute(path).lexically_normal().string();
}

// The run's own configuration with what the given flags say otherwise, whose names go to `changed`.
config::RunConfig merge_into_run(const fs::path& run, config::RunConfig asked,
                                 const std::vector<std::string>& given,
                                 std::vector<std::string>& changed) {
  config::RunConfig config = engine::read_run_config(run);
  config.engine = asked.engine;  // how it was started does not bind how it goes on
  asked.data_dir = absolute(asked.data_dir);
  for (const std::string& flag : given) {
    const std::vector<std::string> settings = dialects::settings_of_imagenet_flag(flag);
    for (const config::ConfigField& field : methods::config_fields()) {
      if (std::find(settings.begin(), settings.end(), field.name) == settings.end()) continue;
      const std::string text = config::field_text(asked, field);
      if (text == config::field_text(config, field)) continue;
      config::set_field(config, field, text);
      changed.push_back(field.name);
      if (!runs::may_change_on_resume(field.name)) {
        throw ConfigError((flag == "DIR" ? flag : "--" + flag) +
                          " cannot change when a run is resumed: leave it out or give what " +
                          run.string() +
                          " was begun with. For another run from its weights: "
                          "cohort export, then --pretrained");
      }
    }
  }
  return config;
}

dialects::ImagenetProgressOptions progress_options(const dialects::ImagenetFlags& flags,
                                                   const config::RunConfig& config,
                                                   std::vector<std::string> opening) {
  dialects::ImagenetProgressOptions options;
  options.print_freq = flags.print_freq;
  options.ranks = static_cast<int>(std::max<std::int64_t>(1, config.workers));
  options.eval_samples = config.eval_batch * options.ranks;
  options.opening = std::move(opening);
  return options;
}

int evaluate_only(const dialects::ImagenetFlags& flags, const config::RunConfig& config,
                  const Resumed& resumed, const std::vector<std::string>& opening) {
  for (const std::string& line : opening) fmt::print("{}\n", line);
  OneEvaluation evaluation(config);
  if (!resumed.run.empty() || !resumed.file.empty()) {
    fmt::print("=> loading checkpoint '{}'\n", flags.resume);
    std::int64_t epoch = 0;
    if (resumed.file.empty()) {
      const storage::LoadedCheckpoint checkpoint = evaluation.take_latest(flags.resume);
      epoch = static_cast<std::int64_t>(checkpoint.extra["engine"].value("epoch", 0.0));
    } else {
      evaluation.take_file(resumed.file);
    }
    fmt::print("=> loaded checkpoint '{}' (epoch {})\n", flags.resume, epoch);
  } else if (!config.init.empty()) {
    for (const std::string& line : engine::initialize_from(config.init, evaluation.model())) {
      fmt::print(stderr, "{}\n", line);
    }
  }
  dialects::make_imagenet_progress(stdout, stderr, progress_options(flags, config, {}))
      ->evaluated(evaluation.on_test_set());
  return 0;
}

// The native command of an evaluation: `cohort eval` takes what it needs from the run.
std::vector<std::string> native_evaluation(const dialects::ImagenetFlags& flags,
                                           const config::RunConfig& config) {
  const std::string what = flags.resume.empty() ? config.init : flags.resume;
  if (what.empty()) {
    throw ConfigError(
        "--evaluate of a random model has no native command: `cohort eval` takes trained ones. "
        "Give --resume or --pretrained");
  }
  static const std::vector<std::string> taken = {
      "model",          "data",      "data-dir",   "device",          "eval-batch",
      "loader-threads", "test-size", "image-size", "synthetic-shape", "synthetic-classes"};
  config::RunConfig shown;
  for (const config::ConfigField& field : methods::config_fields()) {
    if (std::find(taken.begin(), taken.end(), field.name) == taken.end()) continue;
    config::set_field(shown, field, config::field_text(config, field));
  }
  std::vector<std::string> words = dialects::native_command(shown);
  words[1] = "eval";
  words.insert(words.begin() + 2, what);
  return words;
}

void explain(const ImagenetCommand& command, const dialects::Translation& translation,
             const config::RunConfig& config, const std::vector<std::string>& changed) {
  const dialects::ImagenetFlags& flags = command.flags;
  std::vector<std::string> words;
  if (flags.evaluate) {
    words = native_evaluation(flags, config);
  } else if (!flags.resume.empty() && fs::exists(flags.resume)) {
    words = {"cohort", "train", "--resume", run_of(flags.resume).string()};
    for (const config::ConfigField& field : methods::config_fields()) {
      if (std::find(changed.begin(), changed.end(), field.name) == changed.end()) continue;
      words.insert(words.end(), {"--" + field.name, config::field_text(config, field)});
    }
  } else {
    std::vector<std::string> extra;
    if (!command.name.empty()) extra = {"--name", command.name};
    if (command.runs_dir != "runs") extra.insert(extra.end(), {"--runs-dir", command.runs_dir});
    words = dialects::native_command(config, extra);
  }
  std::string before;
  if (const int processes = place_in_job().size; processes > 1) {
    if (place_in_job().rank > 0) return;  // the first one prints
    before = fmt::format("mpirun -n {} ", processes);
  } else if (translation.nodes > 1) {
    before = fmt::format("WORLD_SIZE={} RANK={} ", translation.nodes, translation.node);
  }
  fmt::print("{}{}\n", before, dialects::shell_line(words));
}

class ImagenetObserver final : public ConsoleObserver {
 public:
  ImagenetObserver(const dialects::ImagenetFlags& flags, const std::vector<std::string>& opening,
                   bool resumed)
      : ConsoleObserver(dialects::imagenet_flag_names()),
        flags_(flags),
        opening_(opening),
        resumed_(resumed) {}

 private:
  std::unique_ptr<engine::Progress> display(const runs::WorkerSeat& seat) override {
    if (seat.totals == nullptr) return nullptr;
    dialects::ImagenetProgressOptions options = progress_options(flags_, seat.config, opening_);
    if (resumed_) options.resume = flags_.resume;
    return dialects::make_imagenet_progress(stdout, stderr, std::move(options));
  }
  engine::DueSteps due(Step steps_per_epoch) override {
    return {.record = dialects::imagenet_record_when(flags_.print_freq, steps_per_epoch)};
  }
  bool ends_without_summary() const override { return true; }

  const dialects::ImagenetFlags& flags_;
  const std::vector<std::string>& opening_;
  bool resumed_;
};

int run_imagenet(const ImagenetCommand& command, const std::vector<std::string>& arguments) {
  dialects::ImagenetFlags flags = command.flags;
  const Resumed resumed = find_resumed(flags);
  const std::vector<std::string> given = command.given();
  if (!resumed.run.empty() && std::find(given.begin(), given.end(), "arch") == given.end()) {
    flags.arch = engine::read_run_config(resumed.run).model;
  }
  const dialects::Translation translation = dialects::translate(flags, find_machine(flags));
  if (own_node(translation) == 0 && !flags.evaluate) {  // they are about workers and batches
    for (const std::string& line : translation.notes) fmt::print(stderr, "{}\n", line);
  }
  std::vector<std::string> opening = dialects::imagenet_opening(flags, translation);
  if (resumed.missing) opening.push_back("=> no checkpoint found at '" + flags.resume + "'");

  config::RunConfig config = translation.config;
  runs::RunRequest request;
  std::vector<std::string> changed;
  if (!resumed.run.empty()) {
    config = merge_into_run(resumed.run, config, given, changed);
    request.resume = resumed.run.string();
  }
  if (command.explain) {
    explain(command, translation, config, changed);
    return 0;
  }
  if (flags.evaluate) {
    if (own_node(translation) > 0) return 0;  // the first one evaluates
    return evaluate_only(flags, config, resumed, opening);
  }

  if (translation.nodes > 1) {
    request.place.processes = translation.nodes;
    request.place.process = translation.node;
  }
  request.name = command.name;
  request.runs_dir = command.runs_dir;
  ImagenetObserver observer(flags, opening, !resumed.run.empty());
  return train(config, request, observer, arguments);
}

}  // namespace

void add_imagenet(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand(
      "imagenet", "Train as PyTorch's ImageNet example does, with its flags and its output");
  auto parsed = std::make_shared<ImagenetCommand>(*command);
  command->callback([parsed, &invocation] {
    invocation.exit_status = run_imagenet(*parsed, invocation.arguments);
  });
}

}  // namespace cohort::apps
