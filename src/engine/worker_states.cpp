#include "engine/worker_states.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "core/error.h"

namespace cohort::engine {
namespace {

constexpr transport::Tag kStateTag = 0x7374;

class Packer final : public methods::StateVisitor {
 public:
  explicit Packer(WorkerState& state) : state_(state) {}

  void tensor(const std::string&, const at::Tensor& value) override {
    const at::Tensor flat = value.detach().to(at::kCPU, at::kFloat).contiguous();
    const float* data = flat.data_ptr<float>();
    state_.values.insert(state_.values.end(), data, data + flat.numel());
  }
  void number(const std::string&, std::int64_t& value) override { state_.numbers.push_back(value); }

 private:
  WorkerState& state_;
};

class Unpacker final : public methods::StateVisitor {
 public:
  explicit Unpacker(const WorkerState& state) : state_(state) {}

  void tensor(const std::string&, const at::Tensor& value) override {
    const c10::NoGradGuard no_grad;
    at::Tensor flat = value.detach().to(at::kCPU, at::kFloat).contiguous();
    if (flat.is_alias_of(value)) flat = flat.clone();
    const auto count = static_cast<std::size_t>(flat.numel());
    check(count <= state_.values.size() - value_);
    std::memcpy(flat.data_ptr<float>(), state_.values.data() + value_, count * sizeof(float));
    value_ += count;
    at::Tensor target = value.detach();
    target.copy_(flat);
  }
  void number(const std::string&, std::int64_t& value) override {
    check(number_ < state_.numbers.size());
    value = state_.numbers[number_++];
  }
  bool at_end() const { return value_ == state_.values.size() && number_ == state_.numbers.size(); }
  void end() const { check(at_end()); }

 private:
  static void check(bool fits) {
    if (!fits) throw FileError("a worker's state in the checkpoint is of another model or method");
  }

  const WorkerState& state_;
  std::size_t value_ = 0;
  std::size_t number_ = 0;
};

std::string name_of(std::size_t worker, const char* what) {
  return "worker " + std::to_string(worker) + "/" + what;
}

std::size_t saved_workers(const storage::LoadedCheckpoint& checkpoint) {
  std::size_t saved = 0;
  while (checkpoint.state.find(name_of(saved, "numbers")) != nullptr) ++saved;
  return saved;
}

}  // namespace

void require_no_states(const storage::LoadedCheckpoint& checkpoint) {
  const std::size_t saved = saved_workers(checkpoint);
  if (saved == 0) return;
  throw ConfigError("each worker of this run has a state of its own: it goes on with --workers " +
                    std::to_string(saved) + ", not 1");
}

Bytes to_bytes(const WorkerState& state) {
  const std::vector<std::uint64_t> counts = {state.values.size(), state.numbers.size(),
                                             state.newcomer ? 1U : 0U};
  Bytes bytes;
  for (const auto part : {std::as_bytes(std::span(counts)), std::as_bytes(std::span(state.numbers)),
                          std::as_bytes(std::span(state.values))}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

WorkerState worker_state_from(std::span<const std::byte> bytes, Rank sender) {
  std::uint64_t counts[3] = {0, 0, 0};
  const bool has_counts = bytes.size() >= sizeof counts;
  if (has_counts) std::memcpy(counts, bytes.data(), sizeof counts);
  const std::uint64_t rest = bytes.size() - (has_counts ? sizeof counts : 0);
  if (!has_counts || counts[1] > rest / sizeof(std::int64_t) ||
      counts[0] != (rest - counts[1] * sizeof(std::int64_t)) / sizeof(float)) {
    throw PeerError("rank " + std::to_string(sender) + " sent a worker's state that is none");
  }
  WorkerState state;
  state.newcomer = counts[2] != 0;
  state.numbers.resize(counts[1]);
  state.values.resize(counts[0]);
  const std::byte* at = bytes.data() + sizeof counts;
  if (counts[1] > 0) std::memcpy(state.numbers.data(), at, counts[1] * sizeof(std::int64_t));
  at += counts[1] * sizeof(std::int64_t);
  if (counts[0] > 0) std::memcpy(state.values.data(), at, counts[0] * sizeof(float));
  return state;
}

WorkerState pack_newcomer(methods::Replica& replica, methods::UpdateMethod& method) {
  WorkerState state;
  state.newcomer = true;
  Packer packer(state);
  replica.visit_model(packer);
  replica.visit_state(packer);
  if (auto* const elastic = dynamic_cast<methods::ElasticMethod*>(&method))
    elastic->visit_entry(packer);
  return state;
}

WorkerState pack_worker(methods::Replica& replica, methods::UpdateMethod& method) {
  WorkerState state;
  Packer packer(state);
  replica.visit_model(packer);
  replica.visit_state(packer);
  method.visit_state(packer);
  return state;
}

void unpack_worker(const WorkerState& state, methods::Replica& replica,
                   methods::UpdateMethod& method, Step step) {
  Unpacker unpacker(state);
  replica.visit_model(unpacker);
  replica.visit_state(unpacker);
  auto* const elastic = state.newcomer ? dynamic_cast<methods::ElasticMethod*>(&method) : nullptr;
  if (!state.newcomer) method.visit_state(unpacker);
  if (elastic != nullptr) elastic->visit_entry(unpacker);
  unpacker.end();
  if (elastic != nullptr) elastic->enter(replica, step);
}

std::vector<WorkerState> gather_states(WorkerState own, const WorkerState& newcomer,
                                       transport::Transport& messages, Rank leader,
                                       Deadline deadline) {
  if (messages.rank() != leader) {
    try {
      messages.send(leader, kStateTag, to_bytes(own), deadline);
    } catch (const PeerError&) {
      // Whether this rank was cut off is found out by whoever asks the others next.
      if (messages.gone(leader).empty()) throw;
    }
    return {};
  }
  std::vector<WorkerState> all(static_cast<std::size_t>(messages.size()));
  for (Rank rank = 0; rank < messages.size(); ++rank) {
    if (rank == leader) continue;
    try {
      all[rank] = worker_state_from(messages.receive(rank, kStateTag, deadline).payload, rank);
    } catch (const PeerError&) {
      if (messages.gone(rank).empty()) throw;
      all[rank] = newcomer;
    }
  }
  all[leader] = std::move(own);
  return all;
}

WorkerState scatter_states(std::vector<WorkerState> all, transport::Transport& messages,
                           Deadline deadline) {
  if (messages.rank() != 0) {
    return worker_state_from(messages.receive(0, kStateTag, deadline).payload, 0);
  }
  for (Rank rank = 1; rank < messages.size(); ++rank) {
    try {
      messages.send(rank, kStateTag, to_bytes(all[static_cast<std::size_t>(rank)]), deadline);
    } catch (const PeerError&) {
      if (messages.gone(rank).empty()) throw;
    }
  }
  return std::move(all.front());
}

std::vector<storage::TensorView> state_tensors(const std::vector<WorkerState>& states) {
  std::vector<storage::TensorView> views;
  for (std::size_t worker = 0; worker < states.size(); ++worker) {
    const WorkerState& state = states[worker];
    views.push_back({name_of(worker, state.newcomer ? "entry" : "values"),
                     storage::DType::kF32,
                     {static_cast<std::int64_t>(state.values.size())},
                     std::as_bytes(std::span(state.values))});
    views.push_back({name_of(worker, "numbers"),
                     storage::DType::kI64,
                     {static_cast<std::int64_t>(state.numbers.size())},
                     std::as_bytes(std::span(state.numbers))});
  }
  return views;
}

std::vector<WorkerState> states_from(const storage::LoadedCheckpoint& checkpoint, int workers) {
  const std::string source = (checkpoint.folder / "state.safetensors").string();
  std::vector<WorkerState> states(static_cast<std::size_t>(workers));
  const std::size_t saved = saved_workers(checkpoint);
  if (saved != states.size()) {
    throw ConfigError("each worker of this run has a state of its own: it goes on with --workers " +
                      std::to_string(std::max<std::size_t>(1, saved)) + ", not " +
                      std::to_string(workers));
  }
  for (std::size_t worker = 0; worker < states.size(); ++worker) {
    const storage::TensorView* entry = checkpoint.state.find(name_of(worker, "entry"));
    const storage::TensorView* values =
        entry != nullptr ? entry : checkpoint.state.find(name_of(worker, "values"));
    const storage::TensorView* numbers = checkpoint.state.find(name_of(worker, "numbers"));
    if (values == nullptr || numbers == nullptr || values->dtype != storage::DType::kF32 ||
        numbers->dtype != storage::DType::kI64) {
      throw FileError(source + " has no state of worker " + std::to_string(worker));
    }
    states[worker].newcomer = entry != nullptr;
    states[worker].values.resize(values->bytes.size() / sizeof(float));
    states[worker].numbers.resize(numbers->bytes.size() / sizeof(std::int64_t));
    if (!values->bytes.empty()) {
      std::memcpy(states[worker].values.data(), values->bytes.data(), values->bytes.size());
    }
    if (!numbers->bytes.empty()) {
      std::memcpy(states[worker].numbers.data(), numbers->bytes.data(), numbers->bytes.size());
    }
  }
  return states;
}

}  // namespace cohort::engine
