// The state of every worker in one checkpoint, where workers have models of their own.
//
// The first worker gathers them when it saves and gives them out when a run goes on. In the file
// they are tensors of state.safetensors: "worker 3/values", all of a worker's tensors in the order
// in which replica and method name them, and "worker 3/numbers"; "worker 3/entry" instead of values
// for one that was lost when they were saved, and will begin as a newcomer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/replica.h"
#include "methods/update_method.h"
#include "storage/checkpoint.h"
#include "transport/transport.h"

namespace cohort::engine {

struct WorkerState {
  std::vector<float> values;
  std::vector<std::int64_t> numbers;
  bool newcomer = false;  // model, optimizer and entry of a method that enters
};

// Model, optimizer and method of one worker. Throws FileError when `state` is of another model.
WorkerState pack_worker(methods::Replica& replica, methods::UpdateMethod& method);
// Of one that is to begin in the place of this worker.
WorkerState pack_newcomer(methods::Replica& replica, methods::UpdateMethod& method);
// Takes either; the method of a newcomer enters at `step`.
void unpack_worker(const WorkerState& state, methods::Replica& replica,
                   methods::UpdateMethod& method, Step step);

// All workers call it together; `leader` gets all states, by rank, with `newcomer` in the place of
// those lost; the others get nothing.
std::vector<WorkerState> gather_states(WorkerState own, const WorkerState& newcomer,
                                       transport::Transport& messages, Rank leader,
                                       Deadline deadline);
// `all` is the first one's; each gets its own.
WorkerState scatter_states(std::vector<WorkerState> all, transport::Transport& messages,
                           Deadline deadline);

// As a message, and back. Throws PeerError when it is none.
Bytes to_bytes(const WorkerState& state);
WorkerState worker_state_from(std::span<const std::byte> bytes, Rank sender);

// As tensors of a checkpoint, which share memory with `states`; and back. Throws ConfigError when
// there are those of another number of workers, FileError when there are none.
std::vector<storage::TensorView> state_tensors(const std::vector<WorkerState>& states);
std::vector<WorkerState> states_from(const storage::LoadedCheckpoint& checkpoint, int workers);
// Throws ConfigError when the checkpoint is of several workers, which one cannot go on with.
void require_no_states(const storage::LoadedCheckpoint& checkpoint);

}  // namespace cohort::engine
