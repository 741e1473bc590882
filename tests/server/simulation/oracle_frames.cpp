// What the oracle learns from frames, and what it demands of them.
#include <algorithm>
#include <cstring>

#include "server/numbers.h"
#include "simulation/index.h"
#include "simulation/oracle.h"

namespace cohort::server::simulation {
Oracle::Push* Oracle::find(Rank rank, std::uint64_t incarnation, std::uint64_t sequence) {
  for (Push& push : pushes_[at(rank)]) {
    if (push.incarnation == incarnation && push.sequence == sequence) return &push;
  }
  return nullptr;
}

void Oracle::check_promise(const Promise& promise) const {
  for (int push = 0; push < kMaxPushes; ++push) {
    const Push& each = pushes_[at(promise.rank)][at(push)];
    if (each.incarnation != promise.incarnation || each.sequence == 0 || each.refused) continue;
    if (each.sequence <= promise.applied_to && digits_[at(promise.rank)][at(push)] == 0) {
      fail(Breach::kLost, push_text(promise.rank, push) + " is acknowledged and not in the model");
    }
    // Of one that nobody has been told of, since its connection was gone, the refusal is durable.
    if (each.acknowledged && each.sequence <= promise.durable_to &&
        durable_digits_[at(promise.rank)][at(push)] == 0) {
      fail(Breach::kLost, push_text(promise.rank, push) + " is called durable and is not on disk");
    }
  }
}

void Oracle::call_ended(cohort::simulation::Time) {
  for (const Promise& promise : promises_) check_promise(promise);
  promises_.clear();
}

void Oracle::server_sent(int process, const network::FrameHeader& header,
                         std::span<const std::byte> payload, cohort::simulation::Time now) {
  Process& to = processes_[at(process)];
  const auto type = static_cast<ServerFrame>(header.type);
  if (type == ServerFrame::kAck || type == ServerFrame::kDropped ||
      type == ServerFrame::kRejected) {
    clocks_.answered(to.rank, header.sequence);
  }
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kJoined)) {
    return on_joined(process, header.incarnation, decode_joined(membership::joined_rest(payload)),
                     now);
  }
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kFenced)) {
    return on_fenced(to, header.incarnation, now);
  }
  switch (type) {
    case ServerFrame::kAck:
      if (Push* push = find(to.rank, header.incarnation, header.sequence)) {
        push->refused = false;
        push->acknowledged = true;
      }
      promises_.push_back({to.rank, header.incarnation, header.sequence, header.place});
      return;
    case ServerFrame::kDurable:
      promises_.push_back({to.rank, header.incarnation, 0, header.place});
      return;
    case ServerFrame::kDropped:
    case ServerFrame::kRejected:
      if (Push* push = find(to.rank, header.incarnation, header.sequence)) {
        push->refused = true;
        push->refused_in = boot_;
      }
      return;
    case ServerFrame::kValues:
      serving_ = true;
      if (to.reads == header.sequence) return;  // what follows is as old as the first
      to.reads = header.sequence;
      check_gap(process);
      check_alone(to.rank);
      clocks_.gets_values(to.rank);
      return;
    default:
      return;
  }
}

void Oracle::on_joined(int process, std::uint64_t incarnation, const JoinedBody& body,
                       cohort::simulation::Time now) {
  Process& to = processes_[at(process)];
  if (to.asked_with != 0 && incarnation != to.asked_with) {
    on_fenced(to, to.asked_with, now);
  }
  if (incarnation != to.asked_with) {
    if (incarnation <= issued_[at(to.rank)]) {
      fail(Breach::kFence, "incarnation " + std::to_string(incarnation) + " of worker " +
                               std::to_string(to.rank) + " is given out a second time");
    }
    issued_[at(to.rank)] = incarnation;
    clocks_.joined_anew(to.rank, process);
  }
  // Of several servers, restored ones are not of one moment: worker 0 brings them to one.
  under_way_ = under_way_ || !to.resumed || to.rank == 0 || clocks_.has_left(0);
  if (boot_ > 0 && body.initialized && !under_way_) {
    fail(Breach::kDiverged,
         "worker " + std::to_string(to.rank) +
             " goes on from a snapshot, with its checkpoint and without worker 0");
  }
  clocks_.joined(to.rank);
  to.reads = 0;
  to.left = clocks_.has_left(to.rank);
  issued_in_boot_[at(to.rank)] = std::max(issued_in_boot_[at(to.rank)], incarnation);
  to.incarnation = incarnation;
  to.joined_boot = boot_;
  to.joined_life = life_;
  to.joined_at = now;
  to.disconnected_at.reset();
  to.silent = false;
  // `applied` counts what was answered, refusals that nobody has heard of included.
  promises_.push_back({to.rank, incarnation, 0, body.durable});
  const auto& row = digits_[at(to.rank)];
  const auto in =
      std::count_if(row.begin(), row.end(), [](std::uint8_t each) { return each != 0; });
  if (body.progress != static_cast<std::uint64_t>(in)) {
    fail(Breach::kOther, "worker " + std::to_string(to.rank) + " is told of " +
                             std::to_string(body.progress) + " pushes in the model, of " +
                             std::to_string(in));
  }
}

void Oracle::on_fenced(Process& process, std::uint64_t incarnation, cohort::simulation::Time now) {
  if (incarnation > process.fenced) {
    process.fenced = incarnation;
    process.fenced_in = boot_;
  }
  if (process.released) return;
  if (process.silent || now - process.heard >= swarm_.evict_after) return;
  const bool in_the_way = swarm_.mode == ServerMode::kBounded || clocks_.asked_for(process.rank);
  if (in_the_way && process.disconnected_at &&
      now - *process.disconnected_at >= swarm_.evict_unconnected) {
    return;
  }
  if (issued_[at(process.rank)] > incarnation) return;
  if (clocks_.may_be_gone(process.rank)) return;
  // After a restart being heard is not enough: all wait for what it has to repeat.
  const cohort::simulation::Time patience =
      std::chrono::nanoseconds(ServerOptions().return_within).count();
  if (swarm_.mode == ServerMode::kSync && boot_ > 0 && process.joined_boot == boot_ &&
      process.hindered_until > process.joined_at && now - process.joined_at >= patience) {
    return;
  }
  fail(Breach::kFence, "incarnation " + std::to_string(incarnation) + " of worker " +
                           std::to_string(process.rank) +
                           " is fenced, though it was neither silent nor replaced");
}

void Oracle::server_heard(int process, cohort::simulation::Time now) {
  Process& from = processes_[at(process)];
  if (now - from.heard >= swarm_.evict_after) from.silent = true;
  from.heard = now;
}

void Oracle::server_got(int process, const network::FrameHeader& header,
                        std::span<const std::byte> payload) {
  Process& from = processes_[at(process)];
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kJoin) &&
      header.incarnation == 0) {
    clocks_.asks_to_join(from.rank, process);
  }
  if (header.incarnation != issued_in_boot_[at(from.rank)]) return;
  if (header.type == static_cast<network::FrameType>(ServerFrame::kPull)) {
    header.detail == kPullWhenAlone ? clocks_.looks(from.rank) : clocks_.asks_for_values(from.rank);
  }
  if (header.type == static_cast<network::FrameType>(ServerFrame::kPush)) clocks_.pushes(from.rank);
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kLeave)) {
    from.left = true;
    clocks_.left(from.rank);
  }
  if (header.type == static_cast<network::FrameType>(ServerFrame::kCommitted) &&
      decode_workers(payload, swarm_.workers).empty()) {
    clocks_.answered(from.rank, header.sequence);
  }
}

void Oracle::server_evicted(Rank rank, cohort::simulation::Time now) {
  for (Process& process : processes_) {
    if (process.rank == rank && process.incarnation == issued_[at(rank)]) {
      on_fenced(process, process.incarnation, now);
    }
  }
  clocks_.evicted(rank);
}

bool Oracle::is_member(const Process& process, cohort::simulation::Time now) const {
  return process.joined_boot == boot_ && !process.left &&
         process.incarnation == issued_in_boot_[at(process.rank)] &&
         process.incarnation > process.fenced &&  // which was judged when it happened
         now - process.heard < swarm_.evict_after && !process.silent;
}

void Oracle::check_gap(int process) const {
  if (swarm_.mode != ServerMode::kBounded) return;
  const auto lead = clocks_.lead(processes_[at(process)].rank);
  if (lead && *lead > static_cast<std::uint64_t>(swarm_.staleness)) {
    fail(Breach::kGap, "a read " + std::to_string(*lead) + " steps ahead of the slowest member");
  }
}

void Oracle::check_alone(Rank rank) const {
  if (!clocks_.looking(rank)) return;
  if (const auto other = clocks_.another_training(rank)) {
    fail(Breach::kOther, "worker " + std::to_string(rank) + " gets its last look while worker " +
                             std::to_string(*other) + " may push");
  }
}

void Oracle::server_lost(int process, cohort::simulation::Time now) {
  Process& from = processes_[at(process)];
  from.disconnected_at = now;
  if (from.incarnation == issued_in_boot_[at(from.rank)]) clocks_.disconnected(from.rank);
}

void Oracle::check_abandoned(cohort::simulation::Time now) const {
  for (const Process& process : processes_) {
    if (process.alive && is_member(process, now)) {
      fail(Breach::kOther,
           "the server ends while worker " + std::to_string(process.rank) + " is there");
    }
  }
}

void Oracle::worker_sent(int process, const network::FrameHeader& header,
                         std::span<const std::byte> payload) {
  Process& from = processes_[at(process)];
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kJoin)) {
    from.asked_with = header.incarnation;
    const membership::JoinRequest request = membership::decode_join(payload);
    from.resumed = request.lineage == 0 && request.kind != membership::JoinKind::kAnew;
  }
  if (header.type != static_cast<network::FrameType>(ServerFrame::kPush)) return;
  std::vector<float> piece(payload.size() / sizeof(float));
  std::memcpy(piece.data(), payload.data(), piece.size() * sizeof(float));
  const int number = push_in(from.rank, static_cast<std::int64_t>(header.place), piece);
  if (number < 0) return;
  Push& push = pushes_[at(from.rank)][at(number)];
  if (push.sequence == 0) push.first_boot = boot_;
  push.incarnation = header.incarnation;
  push.sequence = header.sequence;
}

}  // namespace cohort::server::simulation
