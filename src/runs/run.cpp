#include "runs/run.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/repeat_limiter.h"
#include "core/text.h"
#include "engine/checkpointing.h"
#include "engine/trainer.h"
#include "engine/worker.h"
#include "launch/job.h"
#include "methods/method_traits.h"
#include "methods/settings.h"
#include "metrics/discard_sink.h"
#include "runs/agreement.h"
#include "runs/gpu_failure.h"
#include "runs/job_facts.h"
#include "runs/memory.h"
#include "runs/run_files.h"
#include "runs/run_keeper.h"
#include "runs/run_servers.h"

namespace cohort::runs {
namespace {

// Whether workers that are not in step wait for each other in their exchange all the same.
bool waits_in_exchange(const config::RunConfig& config) {
  return methods::traits_of(config.method).servers == methods::MethodTraits::Servers::kParameters &&
         config.server_mode != "async";
}

// One process's part of a run, from the job it has joined to its end.
class ProcessRun {
 public:
  ProcessRun(config::RunConfig& config, const RunRequest& request, std::vector<std::string> notes,
             RunObserver& observer, std::atomic<bool>& stop, launch::Job& job)
      : config_(config),
        traits_(methods::traits_of(config.method)),
        request_(request),
        notes_(std::move(notes)),
        observer_(observer),
        stop_(stop),
        job_(job),
        say_(limit_repeats([&observer](const std::string& line) { observer.note(line); })) {}

  FinishedRun run() {
    try {
      agree();
      open_run();
      model_.reset();
      train();
      return finish();
    } catch (const std::exception& error) {
      if (keeper_ && request_.resume.empty()) keeper_->files().run.discard_if_unused();
      if (const auto lost = lost_gpu_text(error.what())) throw RunError(*lost + way_on());
      throw;
    }
  }

 private:
  // How the run goes on when this process cannot, as the end of a message.
  std::string way_on() {
    if (!keeper_) return "; the run goes on with --resume";
    const auto saved = keeper_->files().checkpoints.list();
    if (saved.empty()) return "; nothing had been saved yet";
    return fmt::format(
        "; the last checkpoint is that of step {}. Go on with: cohort train --resume {}",
        with_commas(saved.front().step), keeper_->path().string());
  }

  bool returns() const { return request_.place.rejoin; }
  bool is_first() const { return shape_.process == 0 && !returns(); }

  // Settings, data and model, the same in all processes, and that this one can train them.
  void agree() {
    agreement_ = returns() ? agree_on_return(job_) : agree_at_start(job_);
    agreement_->agree_on_settings(config_);
    check_method_suits(config_, job_, request_.resume);
    data_ = engine::open_data(config_, request_.data_search);
    observer_.data_opened(config_, *data_);
    agreement_->agree_on_data(*data_);
    model_ = engine::build_model(config_, *data_->train, engine::InitialWeights::kLater);
    asked_ = methods::to_json(config_);
    agreement_->agree_on_stepsize(config_, *model_);
    engine::set_compute_threads(config_, *model_, shape_.host_size);
    require_blas_memory(shape_.local_size);
    engine::check_workers(config_, *data_, shape_.size, {shape_.first_rank, shape_.local_size});
    // Read once more by the worker that needs it: here only to know that it can be.
    if (!config_.init.empty() && request_.resume.empty())
      engine::initialize_from(config_.init, *model_);
  }

  // The run's folder, and where the run stands.
  void open_run() {
    agreement_->agree_on_run(is_first() ? open_folder() : JobFacts{});
    resume_ = resume_point_from(agreement_->facts().resume);
    if (!shape_.outlives_losses) return;
    // What any process may have to tell one that comes back, and to know should it keep the run.
    if (!is_first()) document_ = new_document();
    document_["id"] = agreement_->facts().id;
    job_.set_rejoin_info(to_text(agreement_->facts()));
  }

  nlohmann::json new_document() const {
    return run_document(config_, asked_, *model_, *data_, request_.command);
  }

  JobFacts open_folder() {
    const bool resumed = !request_.resume.empty();
    if (!resumed) {
      observer_.make_room();
      document_ = new_document();
    }
    RunFiles files = open_run_files(config_, request_, document_);
    if (resumed) {
      document_ = resumed_document(request_.resume, config_, *data_, request_.command);
    }
    notes_.insert(notes_.end(), files.notes.begin(), files.notes.end());
    keeper_.emplace(std::move(files), document_, resumed);
    observer_.opened({config_, *data_, model_->store().numel(), keeper_->path()});
    JobFacts facts;
    facts.resume = resume_text(keeper_->files(), config_);
    facts.id = document_.at("id");
    facts.run = std::filesystem::absolute(keeper_->path()).filename();
    return facts;
  }

  void train() {
    auto members = job_.join();
    observer_.workers_start();
    RunServerOutlets outlets{.data_search = request_.data_search};
    if (keeper_) {
      start_dumps();
      outlets.dumps = keeper_->dumps();
      outlets.metrics = &keeper_->metrics();
    }
    RunServers servers(config_, outlets);
    std::optional<methods::ServerAccess> access = servers.access();
    if (access) {
      access->wait_for_others = request_.wait_for_others;
      access->note = say_;
      access->stop = &stop_;
    }
    engine::PauseClock pauses;
    engine::WorkerSetup setup(resume_ ? &*resume_ : nullptr, access ? &*access : nullptr);
    setup.enters = returns();
    setup.note = say_;
    if (waits_in_exchange(config_)) setup.pauses = &pauses;
    setup.out_of_memory = out_of_memory_text;
    engine::run_workers(
        config_, *data_, members, setup, [this](engine::Worker& worker) { train_one(worker); },
        [this](const std::string& text) {
          observer_.note("cohort: " + text);
          std::fflush(nullptr);
          ::_exit(1);
        });
    result_.swamp = servers.wait(result_.outcome.reason == engine::StopReason::kInterrupted);
  }

  FinishedRun finish() {
    result_.config = config_;
    if (keeper_) {
      keeper_->finish_dumps(say_);
      if (const auto warning = keeper_->files().run.remake_if_gone()) say_(*warning);
      keeper_->summarize(result_);
      observer_.finished(result_);
    }
    // A launcher ends the whole job when one process ends with another status than 0.
    if (!shape_.outlives_losses) {
      job_.between_processes().barrier(deadline_in(std::chrono::minutes(5)));
    }
    const bool complete = result_.outcome.missing.empty();
    if (complete && result_.outcome.reason == engine::StopReason::kInterrupted)
      job_.skip_farewell();
    return std::move(result_);
  }

  void start_dumps() {
    const double earlier =
        resume_ ? nlohmann::json::parse(resume_->engine).value("seconds", 0.0) : 0;
    keeper_->start_dumps(config_, request_.dump_root, earlier, say_);
  }

  void train_one(engine::Worker& worker) {
    try {
      // The worker whose records, progress and checkpoints are this process's.
      const bool tells = keeper_.has_value() && worker.member().rank == shape_.first_rank;
      tells ? train_and_tell(worker) : train_silently(worker);
    } catch (...) {
      // Others that are not asked anything between steps would train on without it.
      if (!traits_.in_step()) stop_ = true;
      throw;
    }
  }

  WorkerView view_of(const engine::Worker& worker, const metrics::TotalsSink* totals) {
    return observer_.view(
        {config_, worker.member().rank, worker.order().steps_per_epoch(), totals});
  }

  static engine::TrainerOptions options_of(const engine::Worker& worker, const WorkerView& view) {
    engine::TrainerOptions options = worker.options();
    options.due = view.due;
    return options;
  }

  void train_silently(engine::Worker& worker) {
    metrics::DiscardSink discard;
    const WorkerView view = view_of(worker, nullptr);
    // Nobody gathers what workers do that are not in step.
    const bool records = keeper_ && !traits_.in_step();
    metrics::MetricsSink& sink = records ? keeper_->metrics() : discard;
    engine::TrainerParts parts = worker.parts(*data_, sink, *view.progress);
    if (keeper_ && traits_.models != methods::MethodTraits::Models::kOne) {
      parts.outlets.dumps = keeper_->dumps();
    }
    if (shape_.outlives_losses) {
      parts.take_over = [this, &worker] { return take_over(worker); };
    }
    if (parts.group.alone()) parts.test = nullptr;  // one of them is enough
    engine::Trainer trainer(parts, options_of(worker, view));
    if (resume_ && !returns()) {
      trainer.resume_at(resume_->step, nlohmann::json::parse(resume_->engine), resume_->source);
    }
    const engine::TrainingOutcome outcome = trainer.run(stop_);
    if (worker.member().rank == shape_.first_rank) result_.outcome = outcome;
  }

  void train_and_tell(engine::Worker& worker) {
    const WorkerView view = view_of(worker, &keeper_->totals());
    for (const auto& lines : {notes_, worker.notes()}) {
      for (const std::string& line : lines) view.progress->note(line);
    }
    engine::TrainerParts parts = worker.parts(*data_, keeper_->metrics(), *view.progress);
    parts.outlets = keeper_->outlets(*view.progress);
    engine::Trainer trainer(parts, options_of(worker, view));
    keeper_->resume(trainer, config_, worker.options().total_steps);
    result_.outcome = trainer.run(stop_);
  }

  // Of the worker that leads in the place of the first one, which is lost: its process keeps the
  // run from now on.
  engine::TrainerOutlets take_over(const engine::Worker& worker) {
    const std::string rank = std::to_string(worker.member().rank);
    // On this host as it would be if this process were the first.
    std::filesystem::path path = std::filesystem::path(request_.runs_dir) / agreement_->facts().run;
    if (!request_.resume.empty()) path = request_.resume;
    if (!path.has_filename()) path = path.parent_path();  // it ends with a slash
    keeper_.emplace(take_over_run(path, "rank" + rank, config_, document_), document_,
                    !request_.resume.empty());
    start_dumps();
    taken_over_ = view_of(worker, &keeper_->totals());
    taken_over_.progress->note("rank " + rank + " leads the others now, and keeps the run in " +
                               keeper_->path().string());
    return keeper_->outlets(*taken_over_.progress);
  }

  config::RunConfig& config_;
  const methods::MethodTraits& traits_;
  const RunRequest& request_;
  std::vector<std::string> notes_;  // for the user
  RunObserver& observer_;
  std::atomic<bool>& stop_;
  launch::Job& job_;
  const std::function<void(const std::string&)> say_;  // to people, from any thread
  const launch::JobShape shape_ = job_.shape();
  std::unique_ptr<JobAgreement> agreement_;
  std::unique_ptr<data::DataSplits> data_;
  std::unique_ptr<models::Model> model_;  // like those that the workers will have; until they start
  nlohmann::json asked_;                  // the settings before any was found out
  nlohmann::json document_;               // run.json
  std::optional<engine::ResumePoint> resume_;
  std::optional<RunKeeper> keeper_;  // in the process that keeps the run
  WorkerView taken_over_;
  FinishedRun result_;
};

// What the method chooses where the user left it open, as a line for people.
std::vector<std::string> adapt(config::RunConfig& config, const std::set<std::string>& given) {
  const auto is_given = [&](const std::string& name) { return given.count(name) > 0; };
  const methods::Adaptation chosen = methods::adapt_to_method(config, is_given);
  if (chosen.note.empty()) return {};
  return {chosen.note + "; --" + join(chosen.settings, " and --") +
          (chosen.settings.size() == 1 ? " sets it" : " set them")};
}

FinishedRun run_once(config::RunConfig config, RunRequest& request, RunObserver& observer,
                     std::atomic<bool>& stop) {
  const auto note = [&](const std::string& line) { observer.note("cohort: " + line); };
  const bool alone = !methods::traits_of(config.method).in_step();
  const bool remote = alone && (request.launched || !servers_to_start(config));
  const std::unique_ptr<launch::Job> job =
      remote ? join_servers(config, request.launched, note) : join_job(config, request.place, note);
  std::vector<std::string> notes;
  if (request.given) notes = adapt(config, *std::exchange(request.given, std::nullopt));
  const RunRequest own = remote ? own_request(request, config.rank) : request;
  try {
    return ProcessRun(config, own, notes, observer, stop, *job).run();
  } catch (const CutOffError& error) {
    request.place.rejoin_at.clear();
    for (const network::Address& address : job->addresses()) {
      request.place.rejoin_at.push_back(address.text());
    }
    if (job->shape().local_size == 1) throw;
    throw PeerError(std::string(error.what()) + "; the run goes on with --resume");
  } catch (const std::exception& error) {
    // So that processes which wait for this one end as well, and say why.
    job->between_processes().leave("process " + std::to_string(job->shape().process) +
                                   " failed: " + out_of_memory_text(error).value_or(error.what()));
    throw;
  }
}

}  // namespace

FinishedRun run_job(config::RunConfig config, RunRequest request, RunObserver& observer,
                    std::atomic<bool>& stop) {
  make_paths_absolute(config);
  methods::check_config(config);
  check_names(config);
  while (true) {
    try {
      return run_once(config, request, observer, stop);
    } catch (const CutOffError& error) {
      if (stop) throw;
      observer.note(std::string("cohort: ") + error.what() + "; trying to come back");
      request.place.rejoin = true;
    } catch (const std::exception& error) {
      if (const auto text = out_of_memory_text(error)) throw OutOfMemoryError(*text);
      throw;
    }
  }
}

}  // namespace cohort::runs
