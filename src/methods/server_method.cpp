#include "methods/server_method.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "serving/parameter_client.h"

namespace cohort::methods {
namespace {

// A worker whose gradients are refused so often in a row does no good.
constexpr int kMaxRejections = 3;
constexpr std::chrono::seconds kLeaveTimeout{5};

std::span<float> floats_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// A vector of the replica in main memory: itself, or a copy beside the device's.
class HostVector {
 public:
  explicit HostVector(const at::Tensor& vector)
      : vector_(vector),
        host_(vector.is_cpu() ? vector
                              : at::empty(vector.sizes(), vector.options().device(at::kCPU))) {}

  std::span<float> values() const { return floats_of(host_); }
  void from_device() const {
    if (!host_.is_same(vector_)) host_.copy_(vector_);
  }
  void to_device() const {
    if (!host_.is_same(vector_)) vector_.copy_(host_);
  }

 private:
  at::Tensor vector_;
  at::Tensor host_;
};

class ServerMethod final : public UpdateMethod, public OverlappedExchange {
 public:
  explicit ServerMethod(const MethodOptions& options) : options_(options) {}

  ~ServerMethod() override {
    if (client_ && !out_of_reach_) client_->leave(leave_, deadline_in(kLeaveTimeout));
  }

  void start(Replica& replica) override {
    if (options_.servers == nullptr) {
      COHORT_CHECK(options_.size == 1, "several workers have servers");
      return;
    }
    const ServerAccess& access = *options_.servers;
    parameters_.emplace(replica.parameters());
    gradients_.emplace(replica.gradients());
    serving::ClientArenas arenas{parameters_->values(), gradients_->values(), {}};
    for (const at::Tensor& slot : replica.slots()) {
      slots_.emplace_back(slot);
      arenas.slots.push_back(slots_.back().values());
    }
    copy(Direction::kFromDevice);
    serving::ParameterClientOptions client;
    client.servers = access.servers;
    client.job = access.job;
    client.worker = options_.rank;
    client.credentials = access.credentials;
    client.runtime_folder = access.runtime_folder;
    client.layout = server_layout(replica, access);
    client.specs = server_specs(replica, access, client.layout);
    client.window_bytes = access.window_bytes;
    client.note = access.note;
    client.links.meter = std::make_shared<TrafficMeter>();
    if (options_.server_log != nullptr) options_.server_log->set_meter(client.links.meter);
    client.stop = access.stop;
    const bool resumed = options_.server_log != nullptr && options_.server_log->resumed();
    if (resumed) client.join = membership::JoinKind::kCheckpoint;
    client_ = std::make_unique<serving::ParameterClient>(client, arenas);
    const std::uint64_t steps = client_->start(progress_of(replica), deadline());
    if (options_.server_log != nullptr) {
      options_.server_log->set_first_step(static_cast<Step>(steps));
    }
    copy(Direction::kToDevice);
    for (const Replica::Segment& segment : replica.segments()) {
      ends_.push_back(segment.range.end() + segment.padding);
    }
    expect_all();
  }

  StepKind before_step(Replica& replica) override {
    finish_step(replica);
    if (interrupted_) throw InterruptedError("interrupted between two steps");
    return StepKind::kTrain;
  }

  void gradients_ready(Replica& replica, Range range) override {
    // On a device they are copied when all are there.
    if (!client_ || !replica.gradients().is_cpu() || finished_) return;
    const auto segment = std::upper_bound(ends_.begin(), ends_.end(), range.begin) - ends_.begin();
    ready_[static_cast<std::size_t>(segment)] = true;
    if (!pushing_) client_->begin_push();
    pushing_ = true;
    while (next_ < ready_.size() && ready_[next_]) ++next_;
    if (next_ > 0) client_->extend_push(ends_[next_ - 1]);
  }

  void update(Replica& replica, const StepInfo& info) override {
    if (!client_) {
      replica.apply_gradients(info.lr);
      return;
    }
    if (finished_) return;
    if (!pushing_) client_->begin_push();
    gradients_->from_device();
    client_->finish_push();
    expect_all();
    waiting_ = true;
  }

  void drain(Replica& replica) override { finish_step(replica); }

  void materialize(Replica& replica) override {
    if (!client_) return;
    finish_step(replica);
    options_.doing(Phase::kExchanging);
    refresh(/*with_slots=*/options_.rank == 0);
    copy(Direction::kToDevice);
    note_progress(replica);
  }

  void finish(Replica& replica, Ending ending) override {
    if (!client_) return;
    finish_step(replica);
    const bool complete = ending == Ending::kComplete && !taken_back_;
    leave_ = complete ? membership::LeaveKind::kDone : membership::LeaveKind::kInterrupted;
    // One that was interrupted stays in its rounds until it has saved and left: whoever waits for
    // the others lets them go on alone.
    if (!complete) return;
    options_.doing(Phase::kExchanging);
    try {
      options_.servers->wait_for_others ? wait_for_others() : look_for_others();
    } catch (const InterruptedError&) {  // the model as it is now is saved
    }
  }

  void visit_state(StateVisitor&) override {}

 private:
  enum class Direction { kFromDevice, kToDevice };

  Deadline deadline() const { return deadline_in(options_.patience); }

  // What is behind the values that worker 0 brings.
  server::ModelProgress progress_of(const Replica& replica) const {
    const server::JobSpec& spec = options_.servers->spec;
    server::ModelProgress behind;
    behind.version = static_cast<std::uint64_t>(replica.updates());
    if (options_.server_log != nullptr && options_.server_log->resumed()) {
      behind.pushes = *options_.server_log->resumed();
    }
    if (behind.pushes.size() != static_cast<std::size_t>(options_.size)) {
      behind.pushes = shares_of(behind.version, spec.mode, options_.size);
    }
    return behind;
  }

  void wait_for_others() {
    if (options_.rank > 0) refresh(/*with_slots=*/false);
    if (out_of_reach_) return;
    gives_result_ = options_.rank == client_->progress().front().first;
    if (!gives_result_ || options_.size == 1) return;
    if (options_.rank > 0) {
      note("waits for the others and gives the job's result: those before it are lost");
    }
    client_->wait_for_others();
  }

  // The last one answers for the model: it will not change any more.
  void look_for_others() { gives_result_ = options_.size == 1 || client_->others_are_gone(); }

  // Whoever has been asked to stop saves what there is.
  void refresh(bool with_slots) {
    if (out_of_reach_) return;
    try {
      client_->refresh(with_slots, deadline());
    } catch (const InterruptedError& error) {
      stays_as_it_is(error);
    }
  }

  void stays_as_it_is(const InterruptedError& error) {
    out_of_reach_ = true;
    if (options_.rank > 0) return;
    note(std::string("goes by what it has: ") + error.what() +
         "; the optimizer's state is that of its last checkpoint");
  }

  // The model is that of the servers: how much of the job is in it.
  void note_progress(Replica& replica) {
    std::vector<server::ModelProgress> servers = client_->progress();
    if (out_of_reach_) {  // what they said last may be of another model
      const auto updates = static_cast<std::uint64_t>(replica.updates());
      if (servers.front().version != updates) servers.front() = {.version = updates};
    }
    replica.set_updates(static_cast<std::int64_t>(servers.front().version));
    if (options_.server_log == nullptr) return;
    options_.server_log->set_updates(servers.front().version);
    options_.server_log->set_pushes(servers.front().pushes);
    if (!gives_result_ || leave_ != membership::LeaveKind::kDone) return;
    const ServerAccess& access = *options_.servers;
    options_.server_log->set_missing(
        missing_updates(servers, static_cast<std::uint64_t>(access.updates_asked)));
  }

  void copy(Direction direction) {
    const auto one = [&](const HostVector& vector) {
      direction == Direction::kFromDevice ? vector.from_device() : vector.to_device();
    };
    one(*parameters_);
    for (const HostVector& slot : slots_) one(slot);
  }

  void expect_all() {
    ready_.assign(ends_.size(), false);
    next_ = 0;
    pushing_ = false;
  }

  // The parameters that were asked for have come.
  void finish_step(Replica& replica) {
    if (!waiting_) return;
    options_.doing(Phase::kExchanging);
    waiting_ = false;
    serving::StepOutcome outcome;
    try {
      outcome = client_->wait(deadline());
      // A round has been made without this worker; a gradient that is an update of its own has not.
      while (outcome.fenced > 0 && options_.servers->spec.mode != server::ServerMode::kSync) {
        client_->push_again();
        outcome = client_->wait(deadline());
      }
    } catch (const InterruptedError&) {
      return take_back();
    }
    parameters_->to_device();
    replica.set_updates(static_cast<std::int64_t>(outcome.version));
    finished_ = outcome.finished;
    rejections_ = outcome.rejected > 0 ? rejections_ + 1 : 0;
    if (rejections_ >= kMaxRejections) {
      throw RunError("the servers refused the last " + std::to_string(rejections_) +
                     " gradients of worker " + std::to_string(options_.rank) + ": " +
                     outcome.reason + "; try a lower --lr or --warmup-epochs 1");
    }
    if (outcome.rejected > 0) note("the servers refused a gradient: " + outcome.reason);
    if (options_.server_log == nullptr) return;
    options_.server_log->pushed(outcome.staleness);
    options_.server_log->set_updates(outcome.version);
    if (finished_) options_.server_log->set_finished();
  }

  // The user waits for no other worker. The job goes on from the model without this step.
  void take_back() {
    interrupted_ = true;
    try {
      taken_back_ = !client_->take_back(deadline());
    } catch (const InterruptedError& error) {
      taken_back_ = true;
      stays_as_it_is(error);
    }
    if (taken_back_ && options_.server_log != nullptr) options_.server_log->set_undone();
  }

  void note(const std::string& text) const {
    if (options_.servers->note) {
      options_.servers->note("worker " + std::to_string(options_.rank) + " " + text);
    }
  }

  MethodOptions options_;
  std::optional<HostVector> parameters_;
  std::optional<HostVector> gradients_;
  std::vector<HostVector> slots_;
  std::vector<std::int64_t> ends_;  // of the segments with their padding
  std::vector<bool> ready_;         // segments whose gradient is complete in this step
  std::size_t next_ = 0;            // the first that is not
  bool pushing_ = false;            // a push has begun in this step
  bool waiting_ = false;            // for the parameters after it
  bool finished_ = false;           // the servers have made the last update
  bool interrupted_ = false;        // a wait of this method was ended by the user
  bool taken_back_ = false;         // with the push that it was for
  bool out_of_reach_ = false;       // servers that have not answered within the time left
  int rejections_ = 0;              // in a row
  bool gives_result_ = false;       // the model at its end is that of the whole job
  membership::LeaveKind leave_ = membership::LeaveKind::kFailed;  // unless it comes to finish()
  std::unique_ptr<serving::ParameterClient> client_;
};

}  // namespace

std::vector<std::uint64_t> shares_of(std::uint64_t updates, server::ServerMode mode, int workers) {
  const auto count = static_cast<std::uint64_t>(workers);
  std::vector<std::uint64_t> shares(count, updates);
  if (mode == server::ServerMode::kSync) return shares;
  for (std::uint64_t worker = 0; worker < count; ++worker) {
    shares[worker] = (updates + count - 1 - worker) / count;
  }
  return shares;
}

std::string missing_updates(const std::vector<server::ModelProgress>& servers,
                            std::uint64_t asked) {
  std::vector<std::string> parts;
  for (std::size_t server = 0; server < servers.size(); ++server) {
    const std::uint64_t made = servers[server].version - servers[server].skipped;
    if (made == asked) continue;
    parts.push_back((servers.size() > 1 ? "on server " + std::to_string(server) + " " : "") +
                    with_commas(static_cast<std::int64_t>(made)));
  }
  if (parts.empty()) return {};
  std::vector<std::string> steps;
  for (std::size_t worker = 0; worker < servers.front().pushes.size(); ++worker) {
    steps.push_back(with_commas(static_cast<std::int64_t>(servers.front().pushes[worker])) +
                    " of worker " + std::to_string(worker));
  }
  return "the model has not the " + with_commas(static_cast<std::int64_t>(asked)) +
         " updates asked for but " + join(parts, ", ") + " (gradients: " + join(steps, ", ") + ")";
}

server::Layout server_layout(const Replica& replica, const ServerAccess& access) {
  std::vector<server::ShardTensor> tensors;
  for (const Replica::Segment& segment : replica.segments()) {
    const bool spared =
        segment.kind == models::ParameterKind::kNormalization && !access.decay_normalization;
    tensors.push_back(
        {segment.name, segment.shape, segment.range, spared ? 0.0 : access.weight_decay});
  }
  return server::shard(tensors, static_cast<int>(access.servers.size()), access.sharding);
}

std::vector<server::JobSpec> server_specs(const Replica& replica, const ServerAccess& access,
                                          const server::Layout& layout) {
  std::string model;
  for (const Replica::Segment& segment : replica.segments()) {
    model += segment.name;
    for (const std::int64_t size : segment.shape) model += " " + std::to_string(size);
    for (const std::int64_t stride : segment.strides) model += "," + std::to_string(stride);
    model += "\n";
  }
  std::vector<server::JobSpec> specs;
  for (int server = 0; server < static_cast<int>(layout.sizes.size()); ++server) {
    server::JobSpec spec = access.spec;
    spec.servers = static_cast<int>(layout.sizes.size());
    spec.server = server;
    spec.size = layout.sizes[static_cast<std::size_t>(server)];
    std::string places = model;
    const std::vector<server::Block> blocks = layout.of_server(server);
    for (const server::Block& block : blocks) {
      places += block.name + "@" + std::to_string(block.place) + "\n";
    }
    spec.decay = server::decay_ranges(blocks);
    spec.layout_digest = network::to_text(network::job_id_of(places));
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::unique_ptr<UpdateMethod> make_server_method(const MethodOptions& options) {
  if (options.servers == nullptr && options.size > 1 && options.control == nullptr) {
    throw ConfigError(
        "--method parameter-server with several workers needs servers: give --servers");
  }
  return std::make_unique<ServerMethod>(options);
}

}  // namespace cohort::methods
