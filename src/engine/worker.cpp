#include "engine/worker.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "engine/resident_data.h"
#include "gossip/node.h"
#include "methods/bucket_exchange.h"
#include "methods/device_work.h"
#include "methods/server_access.h"
#include "methods/server_log.h"
#include "methods/settings.h"
#include "topology/registry.h"

namespace cohort::engine {
namespace {

WorkerPlace place_of(const collectives::Membership& member) {
  return {member.rank, member.size, member.host_rank};
}

InitialWeights initial_weights(const collectives::Membership& member) {
  return member.rank == 0 ? InitialWeights::kFromSeed : InitialWeights::kLater;
}

// Each worker's own list of samples follows from how many there are.
void check_partition(const config::RunConfig& config, int workers, const ResumePoint* resume) {
  if (resume == nullptr || config.partition == "none" || config.partition == "all") return;
  const auto order = nlohmann::json::parse(resume->engine).value("order", nlohmann::json::object());
  const int before = order.value("workers", workers);
  if (before == workers) return;
  throw ConfigError("a run with --partition goes on with the same --workers only: " +
                    std::to_string(before) + ", not " + std::to_string(workers));
}

bool is_peer_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const PeerError&) {
    return true;
  } catch (...) {
    return false;
  }
}

// The exception being handled; with the rank and what it was doing when there are several.
template <class Failure>
std::exception_ptr failure_of(const collectives::Membership& member, const std::string& text) {
  return member.size == 1 ? std::current_exception() : std::make_exception_ptr(Failure(text));
}

// What a worker's life threw, if anything.
std::exception_ptr run_one(collectives::Membership& member, const WorkerSetup& setup,
                           const std::function<std::unique_ptr<Worker>()>& build,
                           const std::function<void(Worker&)>& body) {
  // Outlives the handlers: its method may have a thread that waits for the others until we leave.
  std::unique_ptr<Worker> worker;
  const auto leave = [&](const char* what) {
    std::string text =
        "rank " + std::to_string(member.rank) + " failed " + member.activity->text() + ": " + what;
    member.leave(text);
    return text;
  };
  const auto fail = [&](const std::exception& error, const char* what) {
    const auto text = setup.out_of_memory ? setup.out_of_memory(error) : std::nullopt;
    return text ? failure_of<OutOfMemoryError>(member, leave(text->c_str()))
                : failure_of<RunError>(member, leave(what));
  };
  try {
    worker = build();
    body(*worker);
    member.activity->set(Phase::kEnded);
    return nullptr;
  } catch (const CutOffError&) {
    member.messages->close();  // the others know, or are gone
    return std::current_exception();
  } catch (const PeerError& error) {
    member.leave(error.what());  // who is at fault, not who noticed
    return std::current_exception();
  } catch (const InterruptedError& error) {
    leave(error.what());
    return std::current_exception();
  } catch (const ConfigError& error) {
    leave(error.what());
    return std::current_exception();  // what to change, whoever noticed
  } catch (const FileError& error) {
    return failure_of<FileError>(member, leave(error.what()));
  } catch (const c10::Error& error) {
    return fail(error, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return fail(error, error.what());
  } catch (...) {
    return failure_of<RunError>(member, leave("an unknown exception"));
  }
}

}  // namespace

Worker::Worker(const config::RunConfig& config, const data::DataSplits& data,
               collectives::Membership& member, const WorkerSetup& setup)
    : member_(member),
      patience_(patience(config)),
      traits_(methods::traits_of(config.method)),
      model_(build_model(config, *data.train, initial_weights(member))),
      order_(sample_order(
          config, *data.train, place_of(member),
          setup.resume == nullptr ? std::nullopt : std::optional(setup.resume->start))),
      options_(trainer_options(config, *model_, order_, place_of(member))),
      schedule_(build_schedule(config, order_, member.rank)) {
  check_partition(config, member.size, setup.resume);
  options_.watched_classes = data.train->class_names().size();
  options_.may_drift = traits_.own_state;
  options_.placement.resident = options_.evaluation.placement.resident = setup.resident;
  pauses_ = setup.pauses;
  options_.step.pauses = member.rank == 0 ? nullptr : setup.pauses;
  if (member.rank == 0 && !config.init.empty() && setup.resume == nullptr) {
    notes_ = initialize_from(config.init, *model_);
  }
  if (traits_.models == methods::MethodTraits::Models::kAveraged && member.size > 1) {
    if (std::string remark = topology::remark_on(config.topology, member.size); !remark.empty()) {
      notes_.push_back("note: " + std::move(remark));
    }
  }
  const Step between = methods::steps_between_exchanges(config);
  if (member.size > 1 && options_.total_steps < between) {
    notes_.push_back(
        fmt::format("warning: the workers' models never meet before the end: the run has {} steps, "
                    "and --method "
                    "{} exchanges every {}; lower --average-every",
                    with_commas(options_.total_steps), config.method, with_commas(between)));
  }
  replica_ = std::make_unique<methods::Replica>(
      *model_, replica_options(config, *model_, worker_device(config, place_of(member))));
  methods::MethodOptions options = method_options(config, member);
  options.arrivals = &arrivals_;
  options.enters = setup.enters;
  options_.enters = setup.enters;
  options.note = setup.note;
  if (setup.servers != nullptr) {
    servers_ = std::make_unique<const methods::ServerAccess>(
        server_access(config, order_, *setup.servers));
    server_log_ = std::make_unique<methods::ServerLog>();
    options.servers = servers_.get();
    options.server_log = server_log_.get();
  }
  if (options.statistics == methods::StatisticsPolicy::kSynchronised && member.size > 1) {
    model_->store().set_statistics_sum([this](at::Tensor& values) {
      methods::sum_over_ranks(*member_.control, /*on_device=*/false, values,
                              deadline_in(patience_));
    });
  }
  method_ = methods::methods().make(config.method, options);
}

Worker::~Worker() = default;

WorkerGroup Worker::group() {
  if (member_.size == 1 || !traits_.in_step()) return WorkerGroup(*member_.activity);
  return {*member_.control, *member_.activity, patience_, member_.elastic};
}

Traffic Worker::traffic() const { return traffic_without_messages() + member_.message_traffic(); }

Traffic Worker::traffic_without_messages() const {
  if (server_log_) return server_log_->traffic();
  if (member_.size == 1) return {};
  Traffic all = member_.control->traffic() + member_.gradients->traffic();
  if (member_.links) {
    const Traffic links = member_.links->read();
    all.wire_sent = links.wire_sent;
    all.wire_received = links.wire_received;
  }
  return all;
}

TrainerParts Worker::parts(const data::DataSplits& data, metrics::MetricsSink& metrics,
                           Progress& progress) {
  return {.model = *model_,
          .replica = *replica_,
          .method = *method_,
          .schedule = *schedule_,
          .train = *data.train,
          .test = data.test.get(),
          .order = order_,
          .outlets = {.metrics = &metrics, .progress = &progress},
          .group = group(),
          .arrivals = member_.size == 1 || !traits_.in_step() ? nullptr : &arrivals_,
          .server_log = server_log_.get(),
          .pauses = pauses_,
          .traffic = [this] { return traffic_without_messages(); },
          .message_traffic = [this] { return member_.message_traffic(); },
          .has_links = server_log_ != nullptr || member_.links != nullptr,
          .messages = member_.messages.get()};
}

void check_workers(const config::RunConfig& config, const data::DataSplits& data, int workers,
                   Range local) {
  std::set<int> gpus;
  for (Rank rank = 0; rank < workers; ++rank) {
    const WorkerPlace place{rank, workers, rank};
    const at::Device device = worker_device(config, place);
    // libtorch runs the backward passes of one process on one thread a GPU, one after another.
    compute_type(config, device);
    const bool here = rank >= local.begin && rank < local.end();
    if (here && device.is_cuda() && !gpus.insert(device.index()).second &&
        config.batch_norm == "synchronised") {
      throw ConfigError(
          "--batch-norm synchronised needs a GPU for each worker of a process: workers that share "
          "one would wait for each other for ever; use mpirun with one worker a process, or "
          "another --batch-norm");
    }
    if (rank > 0 && config.partition == "none") continue;  // the same for all
    const data::SampleOrder order = sample_order(config, *data.train, place);
    build_schedule(config, order, rank);
  }
  if (methods::traits_of(config.method).models == methods::MethodTraits::Models::kAveraged &&
      workers > 1) {
    const gossip::GossipSettings settings = gossip_settings(config);
    gossip::make_gossip_node(settings, 0, gossip::make_topology(settings, workers), {{0, 1}});
  }
  const collectives::Membership alone;
  methods::methods().make(config.method, method_options(config, alone));
}

namespace {

// How the workers of a process ended, as far as they have.
class Endings {
 public:
  explicit Endings(std::size_t workers) : errors_(workers), ended_(workers, false) {}

  void ended(std::size_t worker, std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      ended_[worker] = true;
      failed_ = failed_ || error;
      errors_[worker] = std::move(error);
    }
    changed_.notify_all();
  }

  // Returns when all have ended; true. Or some time after one has failed; then perhaps false.
  bool wait(std::chrono::seconds after_a_failure) {
    std::unique_lock lock(mutex_);
    const auto all = [&] { return std::find(ended_.begin(), ended_.end(), false) == ended_.end(); };
    changed_.wait(lock, [&] { return all() || failed_; });
    return changed_.wait_for(lock, after_a_failure, all);
  }

  std::vector<std::size_t> running() {
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t> workers;
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      if (!ended_[i]) workers.push_back(i);
    }
    return workers;
  }

  // The first error, but rather a cause than its echo.
  std::exception_ptr cause() {
    const std::lock_guard lock(mutex_);
    std::exception_ptr first;
    for (const std::exception_ptr& error : errors_) {
      if (!error) continue;
      if (!first || (is_peer_error(first) && !is_peer_error(error))) first = error;
    }
    return first;
  }

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::exception_ptr> errors_;
  std::vector<bool> ended_;
  bool failed_ = false;
};

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace

void run_workers(const config::RunConfig& config, const data::DataSplits& data,
                 std::vector<collectives::Membership>& members, const WorkerSetup& setup,
                 const std::function<void(Worker&)>& body,
                 const std::function<void(const std::string&)>& stuck) {
  constexpr std::chrono::seconds kGrace(10);
  choose_arithmetic(config.precision != "fp32");
  std::vector<at::Device> devices;
  for (const collectives::Membership& member : members) {
    devices.push_back(worker_device(config, place_of(member)));
  }
  const ResidentData resident(data, devices);
  WorkerSetup with_data = setup;
  with_data.resident = &resident;
  Endings endings(members.size());
  const auto run = [&](std::size_t index) {
    at::set_num_threads(static_cast<int>(config.threads));  // every thread's own setting
    collectives::Membership& member = members[index];
    const methods::DeviceStream stream(devices[index]);
    const auto build = [&] { return std::make_unique<Worker>(config, data, member, with_data); };
    endings.ended(index, run_one(member, setup, build, body));
  };
  if (members.size() == 1) {
    run(0);
  } else {
    std::vector<std::thread> threads;
    try {
      for (std::size_t index = 0; index < members.size(); ++index) threads.emplace_back(run, index);
    } catch (const std::system_error& error) {
      for (const collectives::Membership& member : members) member.leave("no thread for it");
      for (std::thread& thread : threads) thread.join();
      throw RunError("there are no threads left for " + std::to_string(members.size()) +
                     " workers: " + error.what());
    }
    if (!endings.wait(kGrace) && stuck) {
      std::string text = message_of(endings.cause());
      for (const std::size_t index : endings.running()) {
        text += "; rank " + std::to_string(members[index].rank) + " hangs " +
                members[index].activity->text();
      }
      stuck(text);
    }
    for (std::thread& thread : threads) thread.join();
  }
  if (const std::exception_ptr cause = endings.cause()) std::rethrow_exception(cause);
}

}  // namespace cohort::engine
