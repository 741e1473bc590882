#include "apps/swamp_steps.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "apps/announcements.h"
#include "apps/dump_scoring.h"
#include "apps/environment.h"
#include "apps/training.h"
#include "core/clock.h"
#include "core/error.h"
#include "dialects/swamp_progress.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/run_directory.h"
#include "methods/settings.h"
#include "report/learning_curves.h"
#include "report/pdf_document.h"
#include "report/picture.h"
#include "report/png_canvas.h"
#include "report/report_file.h"
#include "report/run_report.h"
#include "storage/checkpoint_store.h"
#include "storage/file.h"
#include "storage/folder.h"

namespace cohort::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetaFile = "meta.info";
constexpr double kPixelsPerUnit = 2;
constexpr double kRoomForTheTitle = 680;

// The experiment begins every job with an empty folder. Only what is a job is thrown away for it.
void remove_former_job(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  if (!fs::exists(folder / kMetaFile)) {
    throw ConfigError(folder.string() +
                      " is there already and is no job of this experiment: choose another "
                      "--job-name or --job-root-dir");
  }
  static_cast<void>(engine::RunDirectory::open(folder));  // nobody is at work in it
  storage::discard_folder(folder);
}

struct SwampFolder {
  fs::path folder;
  dialects::SwampMeta meta;
};

// The jobs below `root`, by trainers, probability and name. Folders that are none are named.
std::vector<SwampFolder> find_jobs(const std::string& root, const std::string& only = "") {
  std::vector<SwampFolder> jobs;
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!only.empty() && name != only) continue;
    if (!name.starts_with(dialects::kSwampJobPrefix) && !fs::exists(entry->path() / kMetaFile))
      continue;
    try {
      static_cast<void>(engine::read_run_config(entry->path()));
      jobs.push_back({entry->path(), dialects::parse_swamp_meta(storage::read_text_file(
                                         entry->path() / kMetaFile, 4096))});
    } catch (const std::exception& reason) {
      fmt::print(stderr, "skipped: {} is no job: {}\n", entry->path().string(), reason.what());
    }
  }
  if (error) throw ConfigError("--job-root-dir " + root + " cannot be read: " + error.message());
  if (jobs.empty()) {
    throw ConfigError(only.empty()
                          ? "there is no job in " + root + ": `cohort swamp train --job-root-dir " +
                                root + "` makes one"
                          : "there is no job " + only + " in " + root);
  }
  std::sort(jobs.begin(), jobs.end(), [](const SwampFolder& a, const SwampFolder& b) {
    return std::tuple(a.meta.trainers, a.meta.pull_probability, a.folder) <
           std::tuple(b.meta.trainers, b.meta.pull_probability, b.folder);
  });
  return jobs;
}

std::string title_of(const report::RunRecords& run) {
  const std::string server = run.setting("swamp-server");
  return "swamp training for " + run.setting("data") + " data (pull probability " +
         run.setting("pull-probability") + (server.empty() ? "" : ", " + server) + ")";
}

// The experiment's two axes: test loss and accuracy of all dumped models over time.
report::LearningCurves figure_of(const SwampFolder& job) {
  const report::RunRecords run = report::read_run(job.folder);
  report::LearningCurves curves = report::dump_curves(run, title_of(run));
  curves.figure.size.width = std::max(curves.figure.size.width, kRoomForTheTitle);
  return curves;
}

// Where a picture can be drawn: as PNG if this build can.
fs::path picture_path(fs::path path) {
  if (path.extension() == ".png" && !report::can_draw_png()) path.replace_extension(".svg");
  return path;
}

void draw_training_losses(const fs::path& folder, const SwampTrainRequest& request) {
  const dialects::SwampMeta meta{request.flags.trainer_number, request.flags.pull_probability};
  const report::RunRecords run = report::read_run(folder);
  report::CurveOptions options;
  options.y = {"train-loss"};
  options.x = "seconds";
  options.by = report::CurvesBy::kWorker;
  options.title = title_of(run);
  const fs::path path = picture_path(folder / dialects::swamp_loss_file(request.loss_file, meta));
  report::write_picture(report::learning_curves({run}, options).figure, path, kPixelsPerUnit);
  fmt::print(stderr, "{}: training losses\n", path.string());
}

void save_best_model(const fs::path& folder) {
  const storage::CheckpointStore store(folder / "checkpoints", 1);
  const auto checkpoint = store.load_latest(
      [](const std::string& warning) { fmt::print(stderr, "warning: {}\n", warning); });
  if (!checkpoint) throw RunError(folder.string() + " has no checkpoint to take the model from");
  const fs::path path = folder / "best_model.safetensors";
  storage::save_safetensors(path, checkpoint->model.tensors(), {{"format", "pt"}});
  fmt::print(stderr, "{}: the model of the last checkpoint\n", path.string());
}

// Every combination, checked before the first is trained.
std::vector<SwampTrainRequest> jobs_of(const SwampGrid& grid, const SwampTrainRequest& base) {
  std::vector<SwampTrainRequest> jobs;
  const auto servers = grid.servers.empty() ? std::vector<std::string>{""} : grid.servers;
  const auto seeds = grid.seeds.empty() ? std::vector<std::int64_t>{1} : grid.seeds;
  for (const std::string& server : servers) {
    for (const std::int64_t trainers : grid.trainers) {
      for (const double probability : grid.probabilities) {
        for (const std::int64_t seed : seeds) {
          SwampTrainRequest job = base;
          job.flags.swamp_server = server;
          job.flags.trainer_number = trainers;
          job.flags.pull_probability = probability;
          job.flags.seed = seed;
          methods::check_config(dialects::translate(job.flags));
          const std::string name = dialects::swamp_job_name(job.flags);
          const bool twice = std::any_of(jobs.begin(), jobs.end(), [&](const auto& other) {
            return dialects::swamp_job_name(other.flags) == name;
          });
          if (!twice) jobs.push_back(std::move(job));
        }
      }
    }
  }
  return jobs;
}

// All that is known of the jobs, as far as this build can write it.
void write_reports(const std::string& root) {
  std::vector<report::RunRecords> runs;
  for (const SwampFolder& job : find_jobs(root)) runs.push_back(report::read_run(job.folder));
  const report::Report report = report::make_report(runs, {});
  for (const char* name : {"report.pdf", "report.html"}) {
    if (name == std::string("report.pdf") && !report::can_draw_pdf()) continue;
    const fs::path path = fs::path(root) / name;
    report::write_report(report, path);
    fmt::print("{}: {} runs\n", path.string(), runs.size());
  }
}

class SwampObserver final : public ConsoleObserver {
 public:
  SwampObserver(const SwampTrainRequest& request, const fs::path& folder)
      : ConsoleObserver(request.flag_names), flags_(request.flags), folder_(folder) {}

  void make_room() override { remove_former_job(folder_); }
  void opened(const runs::OpenedRun& run) override {
    storage::write_file_atomically(run.path / kMetaFile, dialects::swamp_meta(flags_));
    ConsoleObserver::opened(run);
  }

 private:
  std::unique_ptr<engine::Progress> display(const runs::WorkerSeat& seat) override {
    return dialects::make_swamp_progress(
        stdout, stderr, {seat.rank, static_cast<Step>(flags_.log_interval), seat.steps_per_epoch});
  }

  const dialects::SwampFlags& flags_;
  const fs::path& folder_;
};

}  // namespace

int train_swamp_job(const SwampTrainRequest& request, const std::vector<std::string>& arguments) {
  const config::RunConfig config = dialects::translate(request.flags);
  const std::string name = dialects::swamp_job_name(request.flags);
  const fs::path folder = fs::path(request.job_root_dir) / name;
  methods::check_config(config);
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    throw ConfigError("--job-name must be a plain folder name, got '" + name +
                      "'; where it is made: --job-root-dir");
  }
  runs::RunRequest run;
  run.runs_dir = request.job_root_dir;
  run.name = name;
  run.dump_root = ".";
  SwampObserver observer(request, folder);
  const int status = train(config, run, observer, arguments);
  if (status != 0) return status;
  if (!request.loss_file.empty()) draw_training_losses(folder, request);
  if (request.save_model) save_best_model(folder);
  return 0;
}

int evaluate_swamp_jobs(const SwampEvalRequest& request) {
  const Clock::time_point start = Clock::now();
  std::int64_t damaged = 0;
  std::int64_t found = 0;
  for (const SwampFolder& job : find_jobs(request.job_root_dir, request.job_name)) {
    config::RunConfig config = engine::read_run_config(job.folder);
    config.augment = "none";
    config.eval_batch = request.batch_size > 0 ? request.batch_size : kDumpBatch;
    if (!request.data_dir.empty()) config.data_dir = request.data_dir;
    const std::string name = job.folder.filename().string();
    const auto data = open_announced_data(config);
    DumpScoringRequest scoring;
    scoring.jobs = request.concurrency;
    scoring.most_samples = request.max_batch > 0 ? request.max_batch * config.eval_batch : 0;
    scoring.delete_models = request.delete_job_data;
    scoring.progress = is_terminal(stderr);
    scoring.scored = [&](const storage::FoundDump& dump, const storage::DumpScore&) {
      if (dump.name.of_server) {
        fmt::print("validating job {} ps model version {} ...\n", name, dump.name.version);
      } else {
        fmt::print("validating job {} trainer {} epoch {} batch {} ...\n", name, dump.name.worker,
                   dump.name.epoch, dump.name.batch);
      }
    };
    const DumpScoringReport report = score_dumps(job.folder, config, *data->test, scoring);
    damaged += report.evaluation.damaged;
    found += report.found;
    if (request.delete_job_data) delete_scored_models(job.folder);
    if (stop_requested()) return 130;
  }
  if (found == 0) {
    throw ConfigError("the jobs in " + request.job_root_dir + " have no dumped models yet");
  }
  fmt::print("validation metrics total cost {:.3f} seconds\n",
             seconds_between(start, Clock::now()));
  return damaged == 0 ? 0 : 1;
}

int plot_swamp_jobs(const std::string& job_root_dir, const std::string& loss_file) {
  std::size_t drawn = 0;
  for (const SwampFolder& job : find_jobs(job_root_dir)) {
    try {
      const report::LearningCurves curves = figure_of(job);
      for (const std::string& note : curves.notes) fmt::print(stderr, "note: {}\n", note);
      const fs::path path =
          picture_path(job.folder / dialects::swamp_loss_file(loss_file, job.meta));
      report::write_picture(curves.figure, path, kPixelsPerUnit);
      fmt::print("{}\n", path.string());
      ++drawn;
    } catch (const ConfigError& error) {
      fmt::print(stderr, "skipped: {}\n", error.what());
    }
  }
  if (drawn > 0) return 0;
  throw ConfigError("no job in " + job_root_dir +
                    " has been evaluated: run `cohort swamp eval "
                    "--job-root-dir " +
                    job_root_dir + "` first");
}

int merge_swamp_jobs(const std::string& job_root_dir, const std::string& out) {
  std::vector<report::Figure> figures;
  for (const SwampFolder& job : find_jobs(job_root_dir)) {
    try {
      figures.push_back(figure_of(job).figure);
    } catch (const ConfigError& error) {
      fmt::print(stderr, "skipped: {}\n", error.what());
    }
  }
  if (figures.empty()) {
    throw ConfigError("no job in " + job_root_dir +
                      " has been evaluated: run `cohort swamp eval "
                      "--job-root-dir " +
                      job_root_dir + "` first");
  }
  report::write_figures_pdf(figures, out, "Swamp training: " + job_root_dir);
  fmt::print("{}: {} figures\n", out, figures.size());
  return 0;
}

int run_swamp_grid(const SwampGrid& grid, const SwampTrainRequest& base,
                   const SwampEvalRequest& evaluation, const std::vector<std::string>& arguments) {
  const std::vector<SwampTrainRequest> jobs = jobs_of(grid, base);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    fmt::print(stderr, "job {} of {}: {}\n", i + 1, jobs.size(),
               dialects::swamp_job_name(jobs[i].flags));
    const int status = train_swamp_job(jobs[i], arguments);
    if (status != 0) return status;
  }
  const fs::path root = base.job_root_dir;
  int status = evaluate_swamp_jobs(evaluation);
  if (stop_requested()) return status;
  status = std::max(status, plot_swamp_jobs(root.string(), dialects::kSwampLossFile));
  if (report::can_draw_pdf()) {
    status = std::max(status, merge_swamp_jobs(root.string(), (root / "metrics.pdf").string()));
  } else {
    fmt::print(stderr, "note: this build cannot draw PDF files (no Cairo): see report.html\n");
  }
  write_reports(root.string());
  return status;
}

}  // namespace cohort::apps
