#include "apps/training.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "apps/agreement.h"
#include "apps/command.h"
#include "apps/data_description.h"
#include "apps/environment.h"
#include "apps/job_choice.h"
#include "apps/memory.h"
#include "apps/run_files.h"
#include "apps/run_summary.h"
#include "apps/server_threads.h"
#include "apps/serving.h"
#include "apps/swamp_host.h"
#include "apps/training_progress.h"
#include "core/error.h"
#include "core/exit_status.h"
#include "core/repeat_limiter.h"
#include "core/text.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "engine/run_directory.h"
#include "engine/worker.h"
#include "launch/job.h"
#include "methods/method_traits.h"
#include "methods/server_access.h"
#include "methods/settings.h"
#include "metrics/discard_sink.h"
#include "metrics/run_totals.h"
#include "metrics/tee_sink.h"
#include "network/identity.h"

namespace cohort {
namespace {

// So that the run can be repeated and evaluated from anywhere.
void make_paths_absolute(RunConfig& config) {
  for (std::string* path : {&config.data_dir, &config.init}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal().string();
  }
}

// Whether workers that are not in step wait for each other in their exchange all the same.
bool waits_in_exchange(const RunConfig& config) {
  return traits_of(config.method).servers == MethodTraits::Servers::kParameters &&
         config.server_mode != "async";
}

class Training {
 public:
  Training(RunConfig& config, const TrainRequest& request,
           const std::vector<std::string>& arguments, Job& job)
      : config_(config),
        traits_(traits_of(config.method)),
        request_(request),
        arguments_(arguments),
        job_(job) {}

  int run() {
    try {
      return run_to_the_end();
    } catch (...) {
      if (files_ && request_.resume.empty()) files_->run.discard_if_unused();
      throw;
    }
  }

 private:
  int run_to_the_end() {
    Collectives& processes = job_.between_processes();
    const std::string settings = settings_text(config_);
    if (request_.rejoin) {
      take_rejoin_info();
    } else {
      require_same_settings(processes, config_);
    }
    check_method_suits(config_, job_, request_.resume);
    data_ = open_data(config_, data_search_path());
    if (request_.complete) request_.complete(config_, *data_);
    if (request_.rejoin) {
      require_same_data(data_told_, shape_.process, *data_);
    } else {
      require_same_data(processes, *data_);
    }
    const auto model = build_model(config_, *data_->train, InitialWeights::kLater);
    asked_ = to_json(config_);
    // Found by the first alone: another host's arithmetic may differ in the last digit.
    const bool first = shape_.process == 0 && !request_.rejoin;
    if (first) choose_stepsize(config_, shape_.size, largest_tensor(*model));
    config_.consensus_stepsize = from_first_process(processes, config_.consensus_stepsize);
    set_compute_threads(config_, *model, shape_.host_size);
    require_blas_memory(shape_.local_size);
    check_workers(config_, *data_, shape_.size, {shape_.first_rank, shape_.local_size});
    // Read once more by the worker that needs it: here only to know that it can be.
    if (!config_.init.empty() && request_.resume.empty()) initialize_from(config_.init, *model);
    if (first) prepare_run(*model);
    if (!request_.rejoin) {
      const std::string resume =
          from_first_process(processes, files_ ? resume_text(*files_, config_) : "");
      resume_ = resume_point_from(resume);
      if (shape_.outlives_losses) prepare_to_tell(settings, resume);
    }
    if (shape_.outlives_losses) {
      if (!first) document_ = run_document(config_, asked_, *model, *data_, arguments_);
      document_["id"] = run_id_;
      job_.set_rejoin_info(told_);
    }
    auto members = job_.join();
    watch_signals();
    start_dumps();
    const std::optional<ServerAccess> servers = reach_servers();
    WorkerSetup setup(resume_ ? &*resume_ : nullptr, servers ? &*servers : nullptr);
    setup.enters = request_.rejoin;
    setup.note = say_;
    PauseClock pauses;
    if (waits_in_exchange(config_)) setup.pauses = &pauses;
    setup.explain = [this](const std::exception& error) {
      return out_of_memory_text(error, request_.flag_names);
    };
    run_workers(
        config_, *data_, members, setup, [&](Worker& worker) { train_one(worker); },
        [](const std::string& text) {
          fmt::print(stderr, "cohort: {}\n", text);
          std::fflush(nullptr);
          ::_exit(1);
        });
    if (server_threads_) server_threads_->wait();
    if (swamp_ && outcome_.reason == StopReason::kInterrupted) swamp_->stop();
    if (swamp_) swamp_report_ = swamp_->wait();
    finish_dumps();
    if (files_) finish();
    // A launcher ends the whole job when one process ends with another status than 0.
    if (!shape_.outlives_losses) processes.barrier(deadline_in(std::chrono::minutes(5)));
    if (!outcome_.missing.empty()) {
      say("cohort: " + outcome_.missing);
      return 1;
    }
    if (outcome_.reason != StopReason::kInterrupted) return 0;
    job_.skip_farewell();
    return kExitInterrupted;
  }

  // What any process may have to tell one that is back, and to know should it keep the run itself.
  void prepare_to_tell(const std::string& settings, const std::string& resume) {
    Collectives& processes = job_.between_processes();
    run_id_ = from_first_process(processes, files_ ? document_.at("id").get<std::string>() : "");
    run_name_ = from_first_process(
        processes, files_ ? std::filesystem::absolute(files_->run.path()).filename() : "");
    told_ = nlohmann::json{{"settings", settings},
                           {"data", data_facts(*data_)},
                           {"consensus-stepsize", config_.consensus_stepsize},
                           {"resume", resume},
                           {"run", run_name_},
                           {"id", run_id_}}
                .dump();
  }

  // Of a process that is back: whether it is of the same run, and what was found out before.
  void take_rejoin_info() {
    try {
      told_ = job_.rejoin_info();
      const auto told = nlohmann::json::parse(told_);
      require_same_settings(told.at("settings"), shape_.process, config_);
      data_told_ = told.at("data");
      config_.consensus_stepsize = told.at("consensus-stepsize");
      resume_ = resume_point_from(told.at("resume"));
      run_name_ = told.at("run");
      if (std::filesystem::path(run_name_).filename() != run_name_) {
        throw PeerError("who leads told a run's name that is none: " + run_name_);
      }
      run_id_ = told.at("id");
    } catch (const nlohmann::json::exception& error) {
      throw PeerError(std::string("who leads told something else than the run's settings: ") +
                      error.what());
    }
  }

  // Where the parameter servers are; those of this process are started here.
  std::optional<ServerAccess> reach_servers() {
    if (traits_.in_step()) return std::nullopt;
    ServerAccess access;
    access.wait_for_others = request_.wait_for_others;
    access.note = say_;
    access.stop = &stop_requested();
    if (const std::optional<int> own = servers_to_start(config_)) {
      access.job = random_job_id();
      if (traits_.servers == MethodTraits::Servers::kBestModel) {
        start_swamp(access.job);
        access.servers = {swamp_->address()};
        return access;
      }
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

  void start_swamp(const JobId& job) {
    SwampHostOptions options;
    options.config = config_;
    options.server.workers = static_cast<int>(config_.workers);
    options.dumps = dumps_.get();
    if (files_) options.metrics = &*metrics_;
    swamp_ = std::make_unique<SwampThread>(std::move(options), job);
  }

  void start_dumps() {
    if (!files_ || config_.dump_every == 0) return;
    DumpWriterOptions options;
    // A run that goes on has them where it began to.
    const bool directly = std::filesystem::exists(files_->run.path() / DumpName{}.series());
    options.root = files_->run.path() / (directly ? "." : request_.dump_root);
    options.keep = config_.keep_dumps;
    options.drop_when_slow = config_.dump_drop;
    if (resume_) {
      options.earlier_seconds = nlohmann::json::parse(resume_->engine).value("seconds", 0.0);
    }
    options.note = say_;
    dumps_ = std::make_unique<DumpWriter>(std::move(options));
  }

  void finish_dumps() {
    if (!dumps_) return;
    const DumpCounts counts = dumps_->finish();
    if (counts.failed > 0) {
      say(fmt::format("warning: {} of {} models could not be dumped", counts.failed,
                      counts.failed + counts.written));
    }
    if (counts.left_out > 0) {
      say(
          fmt::format("warning: {} models were not dumped because the disk was too slow: give a "
                      "larger --dump-every, or leave out --dump-drop to wait for it",
                      counts.left_out));
    }
  }

  void say(const std::string& line) const { say_(line); }

  // The worker whose records, progress and checkpoints are this process's.
  bool speaks_for_us(const Worker& worker) const {
    return files_.has_value() && worker.member().rank == shape_.first_rank;
  }

  // Everything that is recorded goes to the run's folder, and is added up.
  void keep_run(RunFiles files) {
    files_.emplace(std::move(files));
    metrics_.emplace(std::vector<MetricsSink*>{&files_->run.metrics(), &totals_});
  }

  void prepare_run(const Model& model) {
    const bool anew = request_.resume.empty();
    if (anew) document_ = run_document(config_, asked_, model, *data_, arguments_);
    keep_run(open_run(config_, request_, document_));
    if (!anew) document_ = resumed_document(request_.resume, config_, *data_, arguments_);
    if (request_.prepared) request_.prepared(files_->run.path());
    if (request_.quiet) return;
    announce_run(config_, model.store().numel(), *data_, files_->run.path());
  }

  void train_one(Worker& worker) {
    try {
      speaks_for_us(worker) ? train_and_tell(worker) : train_silently(worker);
    } catch (...) {
      // Others that are not asked anything between steps would train on without it.
      if (!traits_.in_step()) request_stop();
      throw;
    }
  }

  void train_silently(Worker& worker) {
    DiscardSink discard;
    const auto progress =
        request_.make_worker_progress
            ? worker_progress(request_, worker.member().rank, worker.order().steps_per_epoch())
            : make_silent_progress();
    // Nobody gathers what workers do that are not in step.
    const bool records = files_ && !traits_.in_step();
    MetricsSink& sink = records ? static_cast<MetricsSink&>(*metrics_) : discard;
    TrainerParts parts = worker.parts(*data_, sink, *progress);
    if (traits_.models != MethodTraits::Models::kOne) parts.outlets.dumps = dumps_.get();
    if (shape_.outlives_losses) {
      parts.take_over = [this, &worker] { return take_over(worker); };
    }
    if (parts.group.alone()) parts.test = nullptr;  // one of them is enough
    Trainer trainer(parts, options(worker));
    if (resume_ && !request_.rejoin) {
      trainer.resume_at(resume_->step, nlohmann::json::parse(resume_->engine), resume_->source);
    }
    const TrainingOutcome outcome = trainer.run(stop_requested());
    if (worker.member().rank == shape_.first_rank) outcome_ = outcome;
  }

  void train_and_tell(Worker& worker) {
    const Step steps_per_epoch = worker.order().steps_per_epoch();
    const auto progress = choose_progress(request_, config_, steps_per_epoch, totals_);
    for (const std::string& line : request_.notes) progress->note(line);
    for (const std::string& line : files_->notes) progress->note(line);
    for (const std::string& line : worker.notes()) progress->note(line);
    TrainerParts parts = worker.parts(*data_, *metrics_, *progress);
    parts.outlets = outlets(*progress);
    Trainer trainer(parts, options(worker));
    if (files_->checkpoint) resume_first(trainer, worker.options().total_steps);
    if (!request_.resume.empty()) files_->run.write_run_json(document_);
    outcome_ = trainer.run(stop_requested());
  }

  TrainerOutlets outlets(Progress& progress) {
    return {.metrics = &*metrics_,
            .progress = &progress,
            .checkpoints = &files_->checkpoints,
            .run = &files_->run,
            .dumps = dumps_.get()};
  }

  void keep_folder() {
    if (const auto warning = files_->run.remake_if_gone()) say(*warning);
  }

  // Of the worker that leads in the place of the first one, which is lost: its process keeps the
  // run from now on.
  TrainerOutlets take_over(const Worker& worker) {
    const std::string who = "rank" + std::to_string(worker.member().rank);
    // On this host as it would be if this process were the first.
    const std::filesystem::path path = request_.resume.empty()
                                           ? std::filesystem::path(request_.runs_dir) / run_name_
                                           : std::filesystem::path(request_.resume);
    const bool slash = !path.has_filename();
    keep_run(take_over_run(slash ? path.parent_path() : path, who, config_, document_));
    start_dumps();
    taken_over_ = choose_progress(request_, config_, worker.order().steps_per_epoch(), totals_);
    taken_over_->note("rank " + std::to_string(worker.member().rank) +
                      " leads the others now, and keeps the run in " + files_->run.path().string());
    return outlets(*taken_over_);
  }

  TrainerOptions options(const Worker& worker) const {
    TrainerOptions options = worker.options();
    if (request_.record_when) {
      options.due.record = request_.record_when(worker.order().steps_per_epoch());
    }
    if (request_.evaluate_when) {
      options.due.evaluate = request_.evaluate_when(worker.order().steps_per_epoch());
    }
    return options;
  }

  void resume_first(Trainer& trainer, Step total) {
    const LoadedCheckpoint& checkpoint = *files_->checkpoint;
    if (checkpoint.step > total) {
      throw ConfigError(fmt::format("{} is at step {} already, beyond the {} asked for: raise {}",
                                    files_->run.path().string(), checkpoint.step, total,
                                    length_flag(config_)));
    }
    trainer.resume(checkpoint);
    files_->run.rewind_metrics(checkpoint.extra["engine"].value("metrics_bytes", std::uint64_t{0}));
    files_->checkpoint.reset();  // its memory is of no more use
  }

  void finish() {
    keep_folder();
    const std::filesystem::path& path = files_->run.path();
    const RunTotals totals = totals_.totals();
    nlohmann::json summary = summarize(outcome_, totals, path);
    if (swamp_report_) summary["swamp"] = to_json(*swamp_report_);
    const bool was_done = !request_.resume.empty() && outcome_.steps_now == 0 &&
                          outcome_.evaluation_seconds == 0 &&
                          outcome_.reason != StopReason::kInterrupted;
    // What the sitting that trained has measured stays.
    if (!was_done || !std::filesystem::exists(path / "summary.json")) {
      files_->run.write_summary(summary);
    }
    if (request_.json) fmt::print("{}\n", summary.dump());
    if (was_done && !request_.make_progress) {
      say(already_done_text(outcome_, config_, path.string()));
      return;
    }
    if (request_.quiet) return;
    if (request_.make_progress) return print_interruption(stderr, outcome_, path);
    TrainingOutcome told = outcome_;
    told.warning = in_words_of(request_.flag_names, told.warning);
    print_summary(stderr, told, totals, static_cast<int>(config_.workers), path);
    if (swamp_report_) fmt::print(stderr, "server         {}\n", describe(*swamp_report_));
  }

  RunConfig& config_;
  const MethodTraits& traits_;
  const TrainRequest& request_;
  const std::vector<std::string>& arguments_;
  Job& job_;
  const JobShape shape_ = job_.shape();
  std::unique_ptr<DataSplits> data_;
  std::string told_;               // to one that is back
  std::string data_told_;          // of it, about the data
  std::string run_name_;           // the folder of the run
  std::string run_id_;             // in its run.json
  std::optional<RunFiles> files_;  // of the process that keeps it
  TotalsSink totals_;              // of this sitting
  std::optional<TeeSink> metrics_;
  std::unique_ptr<Progress> taken_over_;
  // Trouble with servers is said also to those who want no progress. From any thread.
  const std::function<void(const std::string&)> say_ =
      limit_repeats([](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  nlohmann::json asked_;  // the settings before any was found out
  nlohmann::json document_;
  std::optional<ResumePoint> resume_;
  std::unique_ptr<DumpWriter> dumps_;  // outlives those who write
  std::unique_ptr<ServerThreads> server_threads_;
  std::unique_ptr<SwampThread> swamp_;
  std::optional<SwampReport> swamp_report_;
  TrainingOutcome outcome_;  // of this process's first worker
};

int train_once(RunConfig config, TrainRequest& request, const std::vector<std::string>& arguments) {
  const bool alone = !traits_of(config.method).in_step();
  const bool launched = alone && take_place_from_launcher(config);
  const bool remote = alone && (launched || !servers_to_start(config));
  const std::unique_ptr<Job> job = remote ? join_servers(config, launched)
                                          : join_job(config, {.addresses = request.addresses,
                                                              .processes = request.processes,
                                                              .process = request.process,
                                                              .rejoin = request.rejoin,
                                                              .rejoin_at = request.rejoin_at});
  if (request.is_given) {
    if (const Adaptation chosen = adapt_to_method(config, request.is_given); !chosen.note.empty()) {
      request.notes = {chosen.note + "; --" + join(chosen.settings, " and --") +
                       (chosen.settings.size() == 1 ? " sets it" : " set them")};
    }
    request.is_given = nullptr;
  }
  const TrainRequest own = remote ? own_request(request, config.rank) : request;
  try {
    return Training(config, own, arguments, *job).run();
  } catch (const CutOffError& error) {
    request.rejoin_at.clear();
    for (const Address& address : job->addresses()) request.rejoin_at.push_back(address.text());
    if (job->shape().local_size == 1) throw;
    throw PeerError(std::string(error.what()) + "; the run goes on with --resume");
  } catch (const std::exception& error) {
    // So that processes which wait for this one end as well, and say why.
    job->between_processes().leave(
        "process " + std::to_string(job->shape().process) +
        " failed: " + out_of_memory_text(error, own.flag_names).value_or(error.what()));
    throw;
  }
}

}  // namespace

int train(RunConfig config, const TrainRequest& request,
          const std::vector<std::string>& arguments) {
  make_paths_absolute(config);
  check_config(config);
  check_names(config);
  TrainRequest now = request;
  while (true) {
    try {
      return train_once(config, now, arguments);
    } catch (const CutOffError& error) {
      if (stop_requested()) throw;
      fmt::print(stderr, "cohort: {}; trying to come back\n", error.what());
      now.rejoin = true;
    } catch (const ConfigError& error) {
      throw ConfigError(in_words_of(request.flag_names, error.what()));
    } catch (const std::exception& error) {
      if (const auto text = out_of_memory_text(error, request.flag_names)) throw RunError(*text);
      if (dynamic_cast<const FileError*>(&error) == nullptr) throw;
      throw FileError(in_words_of(request.flag_names, error.what()));
    }
  }
}

}  // namespace cohort
