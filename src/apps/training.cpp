#include "apps/training.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "apps/agreement.h"
#include "apps/environment.h"
#include "apps/run_summary.h"
#include "apps/server_threads.h"
#include "apps/serving.h"
#include "core/error.h"
#include "core/text.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "engine/run_directory.h"
#include "engine/worker.h"
#include "launch/job.h"
#include "launch/lone_job.h"
#include "methods/server_access.h"
#include "metrics/discard_sink.h"

namespace cohort {
namespace {

constexpr int kInterrupted = 130;
constexpr int kMostServers = 1024;

// So that the run can be repeated and evaluated from anywhere.
void make_paths_absolute(RunConfig& config) {
  for (std::string* path : {&config.data_dir, &config.init}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal().string();
  }
}

nlohmann::json describe_data(const DataSplits& data) {
  return {{"found_at", data.found_at.string()},
          {"train_samples", data.train->size()},
          {"test_samples", data.test->size()},
          {"classes", data.train->class_names()}};
}

nlohmann::json run_document(const RunConfig& config, const Model& model, const DataSplits& data,
                            const std::vector<std::string>& arguments) {
  return {{"config", to_json(config)},
          {"command", arguments},
          {"resumed_by", nlohmann::json::array()},
          {"host", describe_host()},
          {"model", {{"parameters", model.store().numel()}}},
          {"data", describe_data(data)}};
}

// The document of a run that goes on: its first command stays, the data must be the same.
nlohmann::json resumed_document(const std::string& run, const RunConfig& config,
                                const DataSplits& data, const std::vector<std::string>& arguments) {
  nlohmann::json document = read_run_json(run);
  const nlohmann::json now = describe_data(data);
  for (const char* key : {"train_samples", "test_samples", "classes"}) {
    if (document["data"][key] != now[key]) {
      throw ConfigError("the data at " + now["found_at"].dump() + " are not those that " + run +
                        " was trained on: other " + key + "; give the right --data-dir");
    }
  }
  document["config"] = to_json(config);
  document["resumed_by"].push_back(arguments);
  document["host"] = describe_host();
  return document;
}

std::unique_ptr<Progress> choose_progress(const TrainRequest& request, const RunConfig& config,
                                          Step steps_per_epoch) {
  if (request.make_progress) return request.make_progress(config, steps_per_epoch);
  if (request.quiet) return make_quiet_progress(stderr);
  return is_terminal(stderr) ? make_progress_bar(stderr) : make_plain_progress(stderr);
}

std::string counted(std::int64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

void announce(const RunConfig& config, const Model& model, const DataSplits& data,
              const RunDirectory& run) {
  const SampleShape shape = data.train->shape();
  fmt::print(stderr, "model    {}: {} parameters\n", config.model,
             with_commas(model.store().numel()));
  fmt::print(stderr, "data     {}: {} training and {} test samples of {}x{}x{}, {} classes{}\n",
             config.data, with_commas(data.train->size()), with_commas(data.test->size()),
             shape.channels, shape.height, shape.width, data.train->class_names().size(),
             data.found_at.empty() ? "" : ", from " + data.found_at.string());
  const std::string workers =
      config.workers == 1 ? "" : fmt::format(", {} workers by {}", config.workers, config.engine);
  fmt::print(stderr, "method   {}{} on {}, {}{}\n", config.method, workers, config.device,
             counted(config.threads, "thread"), config.workers == 1 ? "" : " each");
  fmt::print(stderr, "run      {}\n", run.path().string());
}

// Where the sample order of a run that goes on begins: as before when nothing about it changed, so
// that the run is the very same; otherwise in the middle of the epoch.
OrderStart order_start(const nlohmann::json& engine, const RunConfig& config) {
  const auto start_from = [](const nlohmann::json& numbers) {
    return OrderStart{numbers.at(0), numbers.at(1), numbers.at(2)};
  };
  const nlohmann::json order = engine.value("order", nlohmann::json());
  if (order.is_null()) return {};
  const std::int64_t batch = order.at("batch_of_all");
  if (batch == batch_of_all(config, static_cast<int>(config.workers))) {
    return start_from(order.at("started_at"));
  }
  if (config.partition != "none") {
    throw ConfigError("a run with --partition goes on with the same --workers and --batch only");
  }
  return start_from(order.at("stands_at"));
}

nlohmann::json to_json(const ResumePoint& point) {
  return {{"start", {point.start.step, point.start.epoch, point.start.position}},
          {"step", point.step},
          {"engine", point.engine},
          {"source", point.source}};
}

std::optional<ResumePoint> resume_point_from(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const nlohmann::json document = nlohmann::json::parse(text);
  const nlohmann::json& start = document.at("start");
  return ResumePoint{{start.at(0), start.at(1), start.at(2)},
                     document.at("step"),
                     document.at("engine"),
                     document.at("source")};
}

// What only the first process has: the run's folder and what is in it.
struct RunFiles {
  RunDirectory run;
  CheckpointStore checkpoints;
  std::optional<LoadedCheckpoint> checkpoint;  // to go on from
  std::vector<std::string> notes;
};

RunFiles open_run(const RunConfig& config, const TrainRequest& request) {
  if (request.resume.empty()) {
    RunDirectory run =
        RunDirectory::create(request.runs_dir, request.name, config.model + "-" + config.data);
    CheckpointStore checkpoints(run.checkpoints(), static_cast<int>(config.keep));
    return {std::move(run), std::move(checkpoints), {}, {}};
  }
  RunDirectory run = RunDirectory::open(request.resume);
  CheckpointStore checkpoints(run.checkpoints(), static_cast<int>(config.keep));
  std::vector<std::string> notes;
  auto checkpoint = checkpoints.load_latest(
      [&](const std::string& warning) { notes.push_back("warning: " + warning); });
  if (!checkpoint) {
    notes.push_back("no checkpoint yet in " + checkpoints.folder().string() +
                    ": starting from step 0");
    run.rewind_metrics(0);
  } else {
    notes.push_back(
        fmt::format("resuming from {} at step {}", checkpoint->folder.string(), checkpoint->step));
  }
  return {std::move(run), std::move(checkpoints), std::move(checkpoint), std::move(notes)};
}

// As JSON for the other processes; empty when the run starts at its beginning.
std::string resume_text(const RunFiles& files, const RunConfig& config) {
  if (!files.checkpoint) return "";
  const LoadedCheckpoint& checkpoint = *files.checkpoint;
  const nlohmann::json engine = checkpoint.extra.value("engine", nlohmann::json::object());
  try {
    return to_json({order_start(engine, config), checkpoint.step, engine.dump(),
                    checkpoint.folder.string()})
        .dump();
  } catch (const nlohmann::json::exception& error) {
    throw FileError(checkpoint.folder.string() + ": its manifest is damaged: " + error.what());
  }
}

class Training {
 public:
  Training(RunConfig& config, const TrainRequest& request,
           const std::vector<std::string>& arguments, Job& job)
      : config_(config), request_(request), arguments_(arguments), job_(job) {}

  int run() {
    Collectives& processes = job_.between_processes();
    require_same_settings(processes, config_);
    check_method_suits(config_, job_);
    data_ = open_data(config_, data_search_path());
    if (request_.complete) request_.complete(config_, *data_);
    require_same_data(processes, *data_);
    const auto model = build_model(config_, *data_->train, InitialWeights::kLater);
    set_compute_threads(config_, *model, job_.host_size());
    check_workers(config_, *data_, job_.size(), {job_.first_rank(), job_.local_size()});
    // Read once more by the worker that needs it: here only to know that it can be.
    if (!config_.init.empty() && request_.resume.empty()) initialize_from(config_.init, *model);
    if (job_.process() == 0) prepare_run(*model);
    resume_ = resume_point_from(
        from_first_process(processes, files_ ? resume_text(*files_, config_) : ""));
    auto members = job_.join();
    watch_signals();
    const std::optional<ServerAccess> servers = reach_servers();
    run_workers(
        config_, *data_, members, {resume_ ? &*resume_ : nullptr, servers ? &*servers : nullptr},
        [&](Worker& worker) { train_one(worker); },
        [](const std::string& text) {
          fmt::print(stderr, "cohort: {}\n", text);
          std::fflush(nullptr);
          ::_exit(1);
        });
    if (files_) finish();
    if (server_threads_) server_threads_->wait();
    // A launcher ends the whole job when one process ends with another status than 0.
    processes.barrier(deadline_in(std::chrono::minutes(5)));
    if (outcome_.reason != StopReason::kInterrupted) return 0;
    job_.skip_farewell();
    return kInterrupted;
  }

 private:
  // Where the parameter servers are; those of this process are started here.
  std::optional<ServerAccess> reach_servers() {
    if (keeps_workers_in_step(config_.method)) return std::nullopt;
    ServerAccess access;
    access.wait_for_others = request_.wait_for_others;
    access.note = say;
    if (const std::optional<int> own = servers_to_start(config_)) {
      access.job = random_job_id();
      server_threads_ = std::make_unique<ServerThreads>(*own, static_cast<int>(config_.workers),
                                                        access.job, [](const std::string&) {});
      access.servers = server_threads_->addresses();
      return access;
    }
    access.servers = parse_addresses(config_.servers);
    access.job = job_id_of(find_job_name(config_.job));
    access.credentials = find_credentials(config_.token_file, config_.tls_dir, config_.insecure);
    access.runtime_folder = runtime_folder();
    return access;
  }

  // Trouble with servers is said also to those who want no progress. From any thread.
  static void say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

  // The worker whose records, progress and checkpoints are this process's.
  bool speaks_for_us(const Worker& worker) const {
    return files_.has_value() && worker.member().rank == job_.first_rank();
  }

  void prepare_run(const Model& model) {
    files_.emplace(open_run(config_, request_));
    document_ = request_.resume.empty()
                    ? run_document(config_, model, *data_, arguments_)
                    : resumed_document(request_.resume, config_, *data_, arguments_);
    if (request_.resume.empty()) files_->run.write_run_json(document_);
    if (request_.quiet) return;
    if (request_.make_progress) {
      fmt::print(stderr, "run      {}\n", files_->run.path().string());
    } else {
      announce(config_, model, *data_, files_->run);
    }
  }

  void train_one(Worker& worker) {
    try {
      speaks_for_us(worker) ? train_and_tell(worker) : train_silently(worker);
    } catch (...) {
      // Others that are not asked anything between steps would train on without it.
      if (!keeps_workers_in_step(config_.method)) request_stop();
      throw;
    }
  }

  void train_silently(Worker& worker) {
    DiscardSink discard;
    const auto silent = make_silent_progress();
    TrainerParts parts = worker.parts(*data_, discard, *silent);
    if (parts.group.alone()) parts.test = nullptr;  // one of them is enough
    Trainer trainer(parts, options(worker));
    if (resume_) {
      trainer.resume_at(resume_->step, nlohmann::json::parse(resume_->engine), resume_->source);
    }
    const TrainingOutcome outcome = trainer.run(stop_requested());
    if (worker.member().rank == job_.first_rank()) outcome_ = outcome;
  }

  void train_and_tell(Worker& worker) {
    const Step steps_per_epoch = worker.order().steps_per_epoch();
    const auto progress = choose_progress(request_, config_, steps_per_epoch);
    for (const std::string& line : files_->notes) progress->note(line);
    for (const std::string& line : worker.notes()) progress->note(line);
    TrainerParts parts = worker.parts(*data_, files_->run.metrics(), *progress);
    parts.checkpoints = &files_->checkpoints;
    parts.metrics_bytes = [this] { return files_->run.metrics_bytes(); };
    Trainer trainer(parts, options(worker));
    if (files_->checkpoint) resume_first(trainer, worker.options().total_steps);
    if (!request_.resume.empty()) files_->run.write_run_json(document_);
    outcome_ = trainer.run(stop_requested());
  }

  TrainerOptions options(const Worker& worker) const {
    TrainerOptions options = worker.options();
    if (request_.record_when) {
      options.record_when = request_.record_when(worker.order().steps_per_epoch());
    }
    if (request_.evaluate_when) {
      options.evaluate_when = request_.evaluate_when(worker.order().steps_per_epoch());
    }
    return options;
  }

  void resume_first(Trainer& trainer, Step total) {
    const LoadedCheckpoint& checkpoint = *files_->checkpoint;
    if (checkpoint.step > total) {
      throw ConfigError(fmt::format("{} is at step {} already, beyond the {} asked for",
                                    files_->run.path().string(), checkpoint.step, total));
    }
    trainer.resume(checkpoint);
    files_->run.rewind_metrics(checkpoint.extra["engine"].value("metrics_bytes", std::uint64_t{0}));
    files_->checkpoint.reset();  // its memory is of no more use
  }

  void finish() {
    const std::filesystem::path& path = files_->run.path();
    const nlohmann::json summary = summarize(outcome_, path);
    files_->run.write_summary(summary);
    if (request_.json) fmt::print("{}\n", summary.dump());
    if (!request_.quiet && !request_.make_progress) print_summary(stderr, outcome_, path);
  }

  RunConfig& config_;
  const TrainRequest& request_;
  const std::vector<std::string>& arguments_;
  Job& job_;
  std::unique_ptr<DataSplits> data_;
  std::optional<RunFiles> files_;  // of the first process
  nlohmann::json document_;
  std::optional<ResumePoint> resume_;
  std::unique_ptr<ServerThreads> server_threads_;
  TrainingOutcome outcome_;  // of this process's first worker
};

}  // namespace

void check_names(const RunConfig& config) {
  methods().find(config.method);
  models().find(config.model);
  data_sets().find(config.data);
  optimizers().find(config.optimizer);
  schedules().find(config.schedule);
  parse_device(config.device);
}

std::unique_ptr<Job> join_job(RunConfig& config, const std::vector<std::string>& addresses,
                              int process) {
  if (config.engine == "auto") config.engine = default_engine();
  engines().find(config.engine);
  const int processes = launched_processes();
  if (processes > 1 && (config.engine == "threads" || config.engine == "nccl")) {
    throw ConfigError("--engine " + config.engine +
                      " lives in one process, but a launcher started " + std::to_string(processes) +
                      ", each of which would train alone: leave " +
                      "--engine out, or start one process");
  }
  if (config.engine == "nccl") {
    if (config.device == "cpu") config.device = "cuda";  // what else could it sum on
    parse_device(config.device);
    if (!config.world.empty()) {
      throw ConfigError(
          "--engine nccl gives worker n the GPU n: leave out --world, or use "
          "--engine threads");
    }
  }
  JobOptions options;
  options.workers = static_cast<int>(config.workers);
  if (config.engine == "tcp") {
    options.job = config.job;
    options.meet = config.meet;
    for (const std::string& address : addresses) {
      options.addresses.push_back(parse_address(address));
    }
    if (!addresses.empty()) {  // started by hand, one after another
      options.process = process;
      options.start_timeout =
          std::chrono::duration_cast<std::chrono::milliseconds>(patience(config));
    }
    options.credentials = find_credentials(config.token_file, config.tls_dir, config.insecure);
    options.note = [](const std::string& line) { fmt::print(stderr, "cohort: {}\n", line); };
  }
  auto job = engines().make(config.engine, options);
  config.workers = job->size();
  return job;
}

std::optional<int> servers_to_start(const RunConfig& config) {
  int servers = 0;
  const char* end = config.servers.data() + config.servers.size();
  const auto parsed = std::from_chars(config.servers.data(), end, servers);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  if (servers >= 1 && servers <= kMostServers) return servers;
  throw ConfigError("--servers takes a number from 1 to " + std::to_string(kMostServers) +
                    ", or addresses: host:port,host:port; got '" + config.servers + "'");
}

namespace {

// This worker's part of a job whose workers know only the servers.
std::unique_ptr<Job> join_servers(RunConfig& config, bool launched) {
  static_cast<void>(parse_addresses(config.servers));  // is what it should be
  if (config.workers < 1) {
    throw ConfigError("give --workers: how many workers the servers at " + config.servers +
                      " have, the same for all");
  }
  if (config.rank < 0 && config.workers == 1) config.rank = 0;
  if (config.rank < 0 || config.rank >= config.workers) {
    throw ConfigError("give each worker its --rank from 0 to " +
                      std::to_string(config.workers - 1));
  }
  config.engine = "threads";
  const auto workers = static_cast<int>(config.workers);
  return make_lone_job(static_cast<Rank>(config.rank), workers, launched ? workers : 1);
}

// Each worker of such a job has a run directory of its own.
TrainRequest own_request(TrainRequest request, std::int64_t rank) {
  if (rank <= 0) return request;
  const std::string suffix = "-worker" + std::to_string(rank);
  if (!request.name.empty()) request.name += suffix;
  if (!request.resume.empty()) request.resume += suffix;
  return request;
}

}  // namespace

void check_method_suits(const RunConfig& config, const Job& job) {
  if (config.method == "local" && job.size() > 1) {
    throw ConfigError("--method local trains one worker alone, but there are " +
                      std::to_string(job.size()) + ": give --method all-reduce");
  }
  if (config.method == "data-parallel" && job.processes() > 1) {
    throw ConfigError("--method data-parallel lives in one process, but there are " +
                      std::to_string(job.processes()) + ": use --method all-reduce");
  }
  if (!keeps_workers_in_step(config.method) && job.processes() > 1) {
    throw ConfigError("--method " + config.method +
                      " has workers that know only the servers: "
                      "start it with cohort launch --servers, or give --servers host:port");
  }
}

const std::vector<std::string>& changeable_on_resume() {
  static const std::vector<std::string> names = {"epochs",
                                                 "iterations",
                                                 "target-accuracy",
                                                 "eval-every",
                                                 "eval-batch",
                                                 "record-every",
                                                 "checkpoint-every",
                                                 "keep",
                                                 "loader-threads",
                                                 "threads",
                                                 "device",
                                                 "data-dir",
                                                 "workers",
                                                 "engine",
                                                 "world",
                                                 "batch",
                                                 "accumulate",
                                                 "bucket",
                                                 "first-bucket",
                                                 "check-replicas",
                                                 "peer-timeout"};
  return names;
}

int train(RunConfig config, const TrainRequest& request,
          const std::vector<std::string>& arguments) {
  make_paths_absolute(config);
  check_config(config);
  check_names(config);
  const bool alone = !keeps_workers_in_step(config.method);
  const bool launched = alone && take_place_from_launcher(config);
  const bool remote = alone && (launched || !servers_to_start(config));
  const std::unique_ptr<Job> job = remote ? join_servers(config, launched)
                                          : join_job(config, request.addresses, request.process);
  const TrainRequest own = remote ? own_request(request, config.rank) : request;
  try {
    return Training(config, own, arguments, *job).run();
  } catch (const std::exception& error) {
    // So that processes which wait for this one end as well, and say why.
    job->between_processes().leave("process " + std::to_string(job->process()) +
                                   " failed: " + error.what());
    throw;
  }
}

}  // namespace cohort
