#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/announcements.h"
#include "apps/checkpoint_choice.h"
#include "apps/command.h"
#include "apps/config_flags.h"
#include "apps/dump_scoring.h"
#include "apps/environment.h"
#include "apps/exported_model.h"
#include "core/error.h"
#include "data/text.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "engine/run_directory.h"
#include "methods/settings.h"
#include "report/run_records.h"

namespace cohort::apps {
namespace {

namespace fs = std::filesystem;

struct EvalCommand {
  explicit EvalCommand(CLI::App& command)
      : flags(command, {"model",      "data",        "data-dir",        "device",
                        "threads",    "eval-batch",  "loader-threads",  "seed",
                        "test-size",  "image-size",  "normalize",       "memory-format",
                        "depth",      "widen",       "growth",          "rnn-hidden",
                        "rnn-layers", "tie-weights", "synthetic-shape", "synthetic-classes",
                        "bptt",       "lowercase",   "fast-decode",     "precision"}) {
    command
        .add_option("what", what,
                    "run directories (all their dumped models and checkpoints), checkpoint "
                    "folders, or safetensors files (give --model and --data for those that `cohort "
                    "export` did not write)")
        ->required();
    command
        .add_option("--split", split,
                    "test, validation (of a text), or train (without augmentation) [what the run "
                    "was evaluated on: test, unless it had --eval-split]")
        ->check(CLI::IsMember({"test", "validation", "train"}));
    command
        .add_option("--jobs", dumps.jobs,
                    "dumped models evaluated at a time, with one thread each and in batches of 100 "
                    "unless --eval-batch is given; 0: one for each core")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    command.add_flag("--again", dumps.again, "also dumped models that have a score already");
    command.add_flag("--delete-dumps", dumps.delete_models,
                     "delete dumped models once they are evaluated; their scores stay");
    command.add_flag("--json", json, "one JSON object a line on standard output");
  }

  ConfigFlags flags;
  std::vector<std::string> what;
  std::string split;  // empty: the run's own
  DumpScoringRequest dumps;
  bool json = false;
};

// A run to evaluate, or something that is no whole run.
struct JobPart {
  fs::path what;
  std::optional<Rank> worker = std::nullopt;  // of a job whose workers have folders each
};

// One model to evaluate and where its weights lie.
struct SavedModel {
  fs::path weights;  // a safetensors file or a checkpoint's folder
  std::string mark;  // "best", "latest" or both
};

// The file `latest` or `best` names a folder first.
std::string pointed_to(const fs::path& pointer) {
  std::error_code error;
  if (!fs::is_regular_file(pointer, error)) return "";
  const std::string text = storage::read_text_file(pointer, 4096);
  return text.substr(0, text.find_first_of(" \n"));
}

std::vector<SavedModel> candidates_of(const fs::path& what) {
  if (fs::is_regular_file(what) || fs::exists(what / "manifest.json")) return {{what, ""}};
  const fs::path folder = run_of(what) / "checkpoints";
  std::vector<storage::StoredCheckpoint> stored = storage::CheckpointStore(folder, 1).list();
  std::vector<SavedModel> all;
  for (auto each = stored.rbegin(); each != stored.rend(); ++each) {
    const std::string name = each->folder.filename().string();
    std::string mark = name == pointed_to(folder / "best") ? "best" : "";
    if (name == pointed_to(folder / "latest")) mark += mark.empty() ? "latest" : ", latest";
    all.push_back({each->folder, mark});
  }
  return all;
}

// The configuration a model was trained with, changed by the flags of this command.
config::RunConfig config_for(const EvalCommand& command, const fs::path& what) {
  config::RunConfig config;
  if (!fs::is_regular_file(what)) {
    config = engine::read_run_config(run_of(what));
  } else if (const std::optional<config::RunConfig> own = exported_config(what)) {
    config = *own;
  } else {
    const std::vector<std::string> given = command.flags.given();
    for (const char* needed : {"model", "data"}) {
      if (!command.flags.config_file_given() &&
          std::find(given.begin(), given.end(), needed) == given.end()) {
        throw ConfigError(what.string() + " does not say what it is for: give --model and --data");
      }
    }
  }
  config = command.flags.resolve(config);
  // What was trained in another precision on a GPU is evaluated on a CPU too.
  if (config.device == "cpu" && command.flags.given_anywhere().count("precision") == 0) {
    config.precision = "fp32";
  }
  config.augment = "none";
  if (command.split == "test" || command.split == "validation") config.eval_split = command.split;
  return config;
}

// A set of samples to evaluate on.
struct Split {
  std::string name;
  const data::Dataset& data;

  bool is_text() const { return data::as_text(data) != nullptr; }
};

void report_json(const JobPart& part, const SavedModel& candidate, const Split& split,
                 const engine::Evaluation& result) {
  nlohmann::json line = {{"model", candidate.weights.string()},
                         {"mark", candidate.mark},
                         {"split", split.name},
                         {"loss", result.loss},
                         {"top1", result.top1},
                         {"top5", result.top5},
                         {"samples", result.samples},
                         {"seconds", result.seconds}};
  if (part.worker) line["worker"] = *part.worker;
  if (split.is_text()) line["perplexity"] = std::exp(result.loss);
  fmt::print("{}\n", line.dump());
}

std::string loss_text(double loss) {
  if (std::isnan(loss)) return "not a number";
  return std::isinf(loss) ? "infinite" : fmt::format("{:.4f}", loss);
}

// "  (worker 1; best, latest)": whose it is, where that is not clear, and what it is to its run.
std::string remark_on(const JobPart& part, const SavedModel& candidate) {
  std::string text = part.worker ? fmt::format("worker {}", *part.worker) : "";
  if (!text.empty() && !candidate.mark.empty()) text += "; ";
  text += candidate.mark;
  return text.empty() ? "" : "  (" + text + ")";
}

void report(const EvalCommand& command, const JobPart& part, const SavedModel& candidate,
            const Split& split, const engine::Evaluation& result) {
  if (command.json) {
    report_json(part, candidate, split, result);
  } else {
    const std::string perplexity =
        split.is_text() ? fmt::format("  perplexity {:.2f}", std::exp(result.loss)) : "";
    fmt::print("{}  {} loss {}{}  top-1 {:.2f}%  top-5 {:.2f}%  {:.0f} {}/s{}\n",
               candidate.weights.string(), split.name, loss_text(result.loss), perplexity,
               100 * result.top1, 100 * result.top5,
               static_cast<double>(result.samples) / result.seconds,
               split.is_text() ? "words" : "samples", remark_on(part, candidate));
  }
  std::fflush(stdout);
  if (std::isfinite(result.loss)) return;
  fmt::print(stderr,
             "warning: {}: its loss is {}, so its guesses mean nothing: the model has diverged, or "
             "its weights are damaged\n",
             candidate.weights.string(), loss_text(result.loss));
}

bool is_run(const fs::path& what) {
  return !fs::is_regular_file(what) && !fs::exists(what / "manifest.json") &&
         fs::equivalent(run_of(what), what);
}

void report_dump(const storage::FoundDump& dump, const storage::DumpScore& score) {
  nlohmann::json line = {{"model", dump.model().string()},
                         {"loss", score.loss},
                         {"top1", score.accuracy},
                         {"seconds", score.seconds}};
  if (score.samples > 0) line["samples"] = score.samples;
  if (dump.name.of_server) {
    line["version"] = dump.name.version;
  } else {
    line["worker"] = dump.name.worker;
    line["epoch"] = dump.name.epoch;
    line["batch"] = dump.name.batch;
  }
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

// Scores are those of what the run was evaluated on: there is one file for each.
DumpScoringReport evaluate_dumps_of(const EvalCommand& command, const fs::path& run,
                                    config::RunConfig config, const data::Dataset& data) {
  const std::vector<std::string> given = command.flags.given();
  if (std::find(given.begin(), given.end(), "eval-batch") == given.end()) {
    config.eval_batch = kDumpBatch;
  }
  DumpScoringRequest request = command.dumps;
  if (command.json) request.scored = report_dump;
  const DumpScoringReport report = score_dumps(run, config, data, request);
  if (report.found > 0 && !command.json) {
    fmt::print(
        "{}: {} dumped models evaluated in {:.1f} s, {} had a score already{}\n", run.string(),
        report.evaluation.evaluated, report.evaluation.seconds, report.had_score,
        report.evaluation.damaged == 0 ? ""
                                       : fmt::format(", {} damaged", report.evaluation.damaged));
    print_scores(stdout, run);
  }
  return report;
}

// Returns how many could not be read or have no finite loss. `data` are opened unless they are: the
// parts of a job have the same.
std::int64_t evaluate_all(const EvalCommand& command, const JobPart& part,
                          std::unique_ptr<data::DataSplits>& data) {
  const fs::path& what = part.what;
  config::RunConfig config = config_for(command, what);
  methods::check_config(config);
  const std::vector<SavedModel> candidates = candidates_of(what);
  if (!data) data = open_announced_data(config);
  const bool train = command.split == "train";
  const Split split{train ? "train" : config.eval_split, train ? *data->train : *data->test};
  std::int64_t damaged = 0;
  if (is_run(what) && split.name == engine::read_run_config(what).eval_split) {
    const DumpScoringReport report = evaluate_dumps_of(command, what, config, split.data);
    damaged = report.evaluation.damaged;
    if (report.found == 0 && candidates.empty()) {
      throw ConfigError(what.string() + " has no checkpoint and no dumped model yet");
    }
    if (stop_requested()) return damaged;
  } else if (candidates.empty()) {
    throw ConfigError(what.string() + " has no checkpoint yet");
  }
  const auto model = engine::build_model(config, split.data);
  engine::set_compute_threads(config, *model);
  const at::Device device = engine::parse_device(config.device);
  engine::choose_arithmetic(config.precision != "fp32");
  methods::Replica replica(*model, engine::replica_options(config, *model, device));
  for (const SavedModel& candidate : candidates) {
    if (stop_requested()) break;
    try {
      const bool single_file = fs::is_regular_file(candidate.weights);
      const storage::SafetensorsFile file = single_file
                                                ? storage::SafetensorsFile::open(candidate.weights)
                                                : storage::load_checkpoint(candidate.weights).model;
      engine::restore_model(file, candidate.weights.string(), replica);
    } catch (const FileError& error) {
      if (!fs::exists(candidate.weights)) continue;  // by the run itself, which goes on
      fmt::print(stderr, "skipped: {}\n", error.what());
      ++damaged;
      continue;
    }
    const engine::Evaluation result =
        engine::evaluate(*model, split.data, engine::evaluator_options(config, *model, device));
    report(command, part, candidate, split, result);
    if (!std::isfinite(result.loss)) ++damaged;
  }
  return damaged;
}

// Whose folder it is, among several of a job.
std::optional<Rank> worker_of(const fs::path& run) {
  const std::int64_t rank = engine::read_run_config(run).rank;
  return rank < 0 ? std::nullopt : std::optional(static_cast<Rank>(rank));
}

// Likewise, of all the processes of a job where `what` is the first one's run.
std::int64_t evaluate_job(const EvalCommand& command, const fs::path& what) {
  std::unique_ptr<data::DataSplits> data;
  const std::vector<fs::path> parts = is_run(what) ? report::processes_of(what) : std::vector{what};
  if (parts.size() == 1) return evaluate_all(command, {what}, data);
  fmt::print(stderr, "job      {}: {} processes, each with a folder of its own\n", what.string(),
             parts.size());
  std::int64_t damaged = evaluate_all(command, {what, worker_of(what)}, data);
  for (std::size_t i = 1; i < parts.size() && !stop_requested(); ++i) {
    try {
      damaged += evaluate_all(command, {parts[i], worker_of(parts[i])}, data);
    } catch (const ConfigError& error) {  // it has saved nothing yet
      fmt::print(stderr, "skipped: {}\n", error.what());
    }
  }
  return damaged;
}

}  // namespace

void add_eval(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand(
      "eval", "Loss and accuracy of dumped models, checkpoints or exported models");
  auto parsed = std::make_shared<EvalCommand>(*command);
  command->callback([parsed, &invocation] {
    std::int64_t damaged = 0;
    for (const fs::path& what : report::jobs_among({parsed->what.begin(), parsed->what.end()})) {
      if (!fs::exists(what)) throw ConfigError("there is no " + what.string());
      damaged += evaluate_job(*parsed, what);
    }
    invocation.exit_status = stop_requested() ? 130 : damaged == 0 ? 0 : 1;
  });
}

}  // namespace cohort::apps
