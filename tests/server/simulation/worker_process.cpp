#include "simulation/worker_process.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "simulation/world.h"

namespace cohort::server::simulation {

WorkerProcess::WorkerProcess(World& world, int index, Rank rank,
                             std::shared_ptr<const Checkpoint> checkpoint)
    : world_(world),
      index_(index),
      rank_(rank),
      checkpoint_(std::move(checkpoint)),
      client_({rank, world.spec(),
               checkpoint_ ? membership::JoinKind::kCheckpoint : membership::JoinKind::kAnew,
               world.swarm().window_bytes, world.swarm().min_part},
              *this),
      gradients_(static_cast<std::size_t>(model_size(world.swarm().workers))),
      values_(gradients_.size()),
      initial_(checkpoint_ ? *checkpoint_
                           : checkpoint_of(world.swarm().workers, 0,
                                           initial_values(world.swarm().workers))) {}

void WorkerProcess::send(const network::FrameHeader& header, std::span<const std::byte> payload,
                         network::Kept) {
  world_.worker_sends(*this, header, payload);
}

void WorkerProcess::connected() {
  client_.on_connected(cohort::simulation::moment(world_.now()));
  drive();
}

void WorkerProcess::lost() {
  connection = 0;
  client_.on_lost(cohort::simulation::moment(world_.now()));
  drive();
}

std::optional<std::span<std::byte>> WorkerProcess::place_for(const network::FrameHeader& header) {
  return client_.place_for(header);
}

void WorkerProcess::frame(const network::FrameHeader& header, std::span<const std::byte> payload,
                          int boot) {
  if (header.type == static_cast<network::FrameType>(ServerFrame::kValues)) values_boot_ = boot;
  client_.on_frame(header, payload, cohort::simulation::moment(world_.now()));
  drive();
}

void WorkerProcess::timer() {
  if (phase_ == Phase::kComputing) {
    begin_push();
  } else if (phase_ == Phase::kPushing) {
    continue_push();
  }
  drive();
}

void WorkerProcess::drive() {
  if (!alive) return;
  if (client_.membership().refused())
    return world_.worker_refused(*this, *client_.membership().refused());
  if (client_.needs_values() && rank_ == 0) {
    world_.oracle().values_brought(initial_);
    client_.initialize(initial_.values, {},
                       {.version = initial_.version, .pushes = initial_.pushes});
  }
  if (phase_ == Phase::kJoining && client_.membership().joined()) pull(kExactParameters);
  if (phase_ == Phase::kPulling && client_.pulled()) pull_answered();
  if (phase_ == Phase::kLeaving && client_.membership().left()) {
    phase_ = Phase::kDone;
    world_.worker_done(*this);
  }
}

void WorkerProcess::pull(std::uint32_t which) {
  phase_ = Phase::kPulling;
  ask(which);
}

void WorkerProcess::ask(std::uint32_t which) {
  std::fill(values_.begin(), values_.end(), std::numeric_limits<float>::quiet_NaN());
  client_.pull(values_, which);
}

void WorkerProcess::pull_answered() {
  if (push_ >= 0) {
    const std::optional<PushOutcome>& outcome = client_.push_outcome();
    if (!outcome) {
      throw Violation(Breach::kOther,
                      "worker " + std::to_string(rank_) + "'s pull was answered before its push");
    }
    world_.oracle().push_ended(index_, push_, *outcome);
    if (outcome->kind == PushOutcome::Kind::kApplied) ++steps_;
    push_ = -1;
  }
  world_.oracle().values_pulled(index_, values_boot_, client_.version(), values_);
  if (begins_)
    steps_ = static_cast<int>(client_.progress().pushes[static_cast<std::size_t>(rank_)]);
  begins_ = false;
  if (rank_ == 0) world_.save(client_.version(), values_, interrupted_);
  if (client_.window() > std::max(world_.swarm().window_bytes, values_.size() * sizeof(float))) {
    throw Violation(Breach::kOther, "worker " + std::to_string(rank_) + " keeps more than it may");
  }
  // What the client still needs of the gradients it must have copied by now.
  std::fill(gradients_.begin(), gradients_.end(), 1e30F);
  if (interrupted_) {
    phase_ = Phase::kLeaving;
    client_.leave(membership::LeaveKind::kInterrupted);
    return;
  }
  if (enough()) {
    if (rank_ < world_.swarm().last_looks && !looked_) {
      looked_ = true;
      return pull(kPullWhenAlone);
    }
    phase_ = Phase::kLeaving;
    client_.leave();
    return;
  }
  phase_ = Phase::kComputing;
  world_.wake_me(*this, world_.compute_time(rank_), ++generation_);
}

bool WorkerProcess::enough() const {
  const int total = world_.swarm().total_updates;
  if (client_.finished() || world_.pushes_of(rank_) >= kMaxPushes) return true;
  return total == 0 && steps_ >= world_.swarm().steps;
}

void WorkerProcess::begin_push() {
  push_ = world_.next_push(rank_);
  if (push_ < 0) {  // another process of this worker has used the last one
    phase_ = Phase::kLeaving;
    client_.leave();
    return;
  }
  make_gradient(world_.seed(), rank_, push_, gradients_);
  const bool poisoned = world_.chance(world_.swarm().poison);
  if (poisoned) {  // at the beginning, or further on where nobody looks for this worker's marks
    const int other = (rank_ + 1) % world_.swarm().workers;
    const bool later = other != rank_ && world_.chance(0.5);
    gradients_[later ? static_cast<std::size_t>(1 + other * kElementsEach) : 0] =
        std::numeric_limits<float>::quiet_NaN();
  }
  world_.oracle().push_begun(index_, push_, poisoned);
  client_.begin_push(gradients_);
  phase_ = Phase::kPushing;
  sent_ = 0;
  asked_ = false;
  continue_push();
}

void WorkerProcess::continue_push() {
  const auto size = static_cast<std::int64_t>(gradients_.size());
  if (!asked_ && world_.chance(world_.swarm().ahead)) {
    asked_ = true;
    ask(0);
  }
  const std::int64_t next = sent_ + 1 + world_.draw(asked_ ? 5 : 20);
  sent_ = world_.chance(asked_ ? 0.1 : 0.6) ? size : std::min(size, next);
  client_.extend_push(sent_);
  if (sent_ == size && asked_) {
    phase_ = Phase::kPulling;
  } else if (sent_ == size) {
    const Swarm& swarm = world_.swarm();
    const bool last = rank_ < swarm.last_looks && swarm.total_updates == 0 &&
                      steps_ + 1 >= swarm.steps && world_.chance(swarm.early_look);
    looked_ = looked_ || last;
    pull(last ? kPullWhenAlone : 0);
  } else {
    world_.wake_me(*this, world_.compute_time(rank_) / 8, ++generation_);
  }
}

}  // namespace cohort::server::simulation
