#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "server/numbers.h"
#include "server/server_state.h"
#include "server/wire_format.h"

namespace cohort::server {

using Presence = Member::Presence;

namespace {

// Ages beyond this are counted as this one: the table stays small whatever peers claim.
constexpr std::uint64_t kMaxStalenessCounted = 4096;

PeerError broken(const Member& member, const std::string& what) {
  return PeerError("worker " + std::to_string(member.worker) + " " + what);
}

std::uint64_t elements(std::size_t bytes, const JobSpec& spec) {
  return bytes / bytes_each(spec.wire);
}

bool is_last(const network::FrameHeader& header, std::size_t bytes, const JobSpec& spec) {
  return header.place + elements(bytes, spec) == static_cast<std::uint64_t>(spec.size);
}

}  // namespace

// Whether the frame is the next one of a push that is to be taken in.
bool ParameterServer::State::expects(const Member& member, const network::FrameHeader& header,
                                     std::size_t bytes) const {
  const auto size = static_cast<std::uint64_t>(spec->size);
  const StagedPush& push = member.push;
  if (member.presence != Presence::kPresent || !initialized || push.whole) return false;
  if (header.sequence != member.applied + 1) return false;
  if (push.arrived > 0 && (push.sequence != header.sequence || push.detail != header.detail)) {
    return false;
  }
  if (bytes % bytes_each(spec->wire) != 0 || (bytes == 0 && size != 0)) return false;
  return header.place == static_cast<std::uint64_t>(push.arrived) && header.place <= size &&
         elements(bytes, *spec) <= size - header.place;
}

void ParameterServer::State::on_push(Member& member, const network::FrameHeader& header,
                                     std::span<const std::byte> payload) {
  StagedPush& push = member.push;
  if (header.sequence == 0) throw broken(member, "sent a push without a number");
  if (header.sequence <= member.applied) {
    if (!is_last(header, payload.size(), *spec)) return;
    ++counters.duplicates;
    if (header.sequence == member.applied) send_answer(member);
    return;
  }
  if (push.whole && header.sequence == push.sequence) {  // answered when its round is made
    if (is_last(header, payload.size(), *spec)) ++counters.duplicates;
    return;
  }
  if (!expects(member, header, payload.size())) {
    throw broken(member, "sent a part of push " + std::to_string(header.sequence) + " at " +
                             std::to_string(header.place) + " that does not follow on push " +
                             std::to_string(member.applied) + ", of which " +
                             std::to_string(push.arrived) + " elements of the next are here");
  }
  member.ended = false;
  member.replay.since = roster.now();
  if (push.arrived == 0) {
    push.sequence = header.sequence;
    push.detail = header.detail;
    push.base = version_near(model->version(), header.detail);
  }
  free_memory(push);
  const std::span<float> place =
      std::span(push.gradients)
          .subspan(static_cast<std::size_t>(header.place), elements(payload.size(), *spec));
  const bool in_place = static_cast<const void*>(place.data()) == payload.data();
  if (!in_place || spec->wire != WireFormat::kFloat32) decode_floats(spec->wire, payload, place);
  push.finite = push.finite && all_finite(place);
  push.arrived += static_cast<std::int64_t>(place.size());
  if (push.arrived == spec->size) {
    push_is_whole(member);
  } else {
    speculate(member);
  }
}

void ParameterServer::State::push_is_whole(Member& member) {
  if (!member.push.finite) {
    answer(member, {.kind = PushAnswer::Kind::kRejected,
                    .staleness = 0,
                    .workers = {},
                    .reason = "the gradient holds numbers that are not finite"});
  } else if (spec->mode == ServerMode::kSync) {
    offer_to_round(member);
  } else {
    apply_at_once(member);
  }
  examine_rounds();
  examine_pulls();
}

void ParameterServer::State::offer_to_round(Member& member) {
  StagedPush& push = member.push;
  const std::uint64_t version = model->version();
  const bool too_late = push.base < version || (push.base > version && !recovering);
  if (too_late || finished_training()) {
    if (push.sequence <= member.replay.to) {
      note_lost(1, "worker " + std::to_string(member.worker) + " repeated a push of round " +
                       std::to_string(push.base + 1) + ", which has been made without it");
    }
    answer(member,
           {.kind = PushAnswer::Kind::kDropped, .staleness = 0, .workers = {}, .reason = {}});
    if (finished_training()) send(member, ServerFrame::kFinished);
    return;
  }
  push.whole = true;
}

void ParameterServer::State::apply_at_once(Member& member) {
  StagedPush& push = member.push;
  const std::uint64_t version = model->version();
  const std::uint64_t staleness = version > push.base ? version - push.base : 0;
  if (spec->delay_compensation > 0 && staleness > 0 && !member.pulled.empty()) {
    materialize();
    compensate_delay(push.gradients, model->parameters(), member.pulled, spec->delay_compensation);
    if (!all_finite(push.gradients)) {
      return answer(member, {.kind = PushAnswer::Kind::kRejected,
                             .staleness = 0,
                             .workers = {},
                             .reason = "the gradient overflows when its delay is compensated"});
    }
  }
  if (!adopt_speculation({member.worker})) queue_update(push.gradients, 1.0);
  ++counters.updates;
  ++counters.pushes;
  ++counters.staleness[std::min(staleness, kMaxStalenessCounted)];
  ++member.progress;
  answer(member,
         {.kind = PushAnswer::Kind::kApplied, .staleness = staleness, .workers = {}, .reason = {}});
}

// The push is dealt with: its number is used up, whatever became of it.
void ParameterServer::State::answer(Member& member, PushAnswer given) {
  if (given.kind == PushAnswer::Kind::kDropped) ++counters.dropped;
  if (given.kind == PushAnswer::Kind::kRejected) {
    ++counters.rejected;
    log("push " + std::to_string(member.push.sequence) + " of worker " +
        std::to_string(member.worker) + " is rejected: " + given.reason);
  }
  member.applied = std::max(member.applied, member.push.sequence);
  ++member.clock;
  member.answer = std::move(given);
  member.push.clear();
  member.replay.since = roster.now();
  snapshots.changes();
  send_answer(member);
}

void ParameterServer::State::send_answer(const Member& member) {
  network::FrameHeader header;
  header.sequence = member.applied;
  const PushAnswer& given = member.answer;
  switch (given.kind) {
    case PushAnswer::Kind::kApplied:
      header.place = member.durable;
      header.detail = static_cast<std::uint32_t>(std::min<std::uint64_t>(given.staleness, ~0U));
      if (spec->mode == ServerMode::kSync) {
        return send(member, ServerFrame::kAck, header,
                    encode_workers(given.workers, spec->workers));
      }
      return send(member, ServerFrame::kAck, header);
    case PushAnswer::Kind::kDropped:
      return send(member, ServerFrame::kDropped, header);
    case PushAnswer::Kind::kRejected:
      return send(member, ServerFrame::kRejected, header, std::as_bytes(std::span(given.reason)));
  }
}

void ParameterServer::State::on_committed(Member& member, const network::FrameHeader& header,
                                          std::span<const std::byte> payload) {
  const std::vector<Rank> workers = decode_workers(payload, spec->workers);
  if (header.sequence <= member.applied) return;
  if (member.push.whole && header.sequence == member.push.sequence) return;  // said before
  if (header.sequence != member.applied + 1 || member.push.arrived > 0 || member.push.whole ||
      member.presence != Presence::kPresent) {
    throw broken(member, "announced push " + std::to_string(header.sequence) + " out of turn");
  }
  member.replay.since = roster.now();
  if (workers.empty()) {
    ++counters.dropped;
    ++member.clock;
    member.applied = header.sequence;
    member.answer = {
        .kind = PushAnswer::Kind::kDropped, .staleness = 0, .workers = {}, .reason = {}};
    snapshots.changes();
    examine_rounds();
    return;
  }
  if (spec->mode != ServerMode::kSync) throw broken(member, "announced a round without rounds");
  if (std::find(workers.begin(), workers.end(), member.worker) == workers.end()) {
    throw broken(member, "announced a round that it is not in");
  }
  if (!recovering) return;
  member.replay.announcement =
      Announcement{.base = version_near(model->version(), header.detail), .workers = workers};
}

void ParameterServer::State::examine_rounds() {
  if (!initialized || spec->mode != ServerMode::kSync) return;
  if (rounds_from && roster.now() < *rounds_from && !recovering) return;
  while (!finished_training()) {
    const RoundDecision decision =
        recovering ? next_recovered_round(*members, model->version()) : next_round(*members, *spec);
    if (decision.kind == RoundDecision::Kind::kWait) return;
    if (decision.kind == RoundDecision::Kind::kRecovered) {
      recovering = false;
      skip_held_versions();
      drop_late_pushes();
      log("all is as before the restart, at update " + std::to_string(model->version()));
      continue;
    }
    if (!decision.missing.empty()) {
      note_lost(decision.missing.size(), "round " + std::to_string(model->version() + 1) +
                                             " is made again without worker " +
                                             membership::ranks_text(decision.missing));
    }
    if (decision.kind == RoundDecision::Kind::kSkip) {
      log("nobody is left who could repeat the rounds between update " +
          std::to_string(model->version()) + " and " + std::to_string(decision.version));
      skip_to(decision.version);
    } else {
      make_round(decision);
    }
    drop_late_pushes();
  }
  recovering = false;
  drop_late_pushes();
}

// False: the sum is not finite.
bool ParameterServer::State::apply_sum(const std::vector<Rank>& ranks) {
  const std::span<float> sum = members->at(ranks.front()).push.gradients;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    add_to(sum, members->at(ranks[i]).push.gradients);
  }
  if (ranks.size() > 1 && !all_finite(sum)) return false;
  queue_update(sum, 1.0 / static_cast<double>(ranks.size()));
  return true;
}

void ParameterServer::State::make_round(const RoundDecision& decision) {
  const std::vector<Rank>& ranks = decision.participants;
  PushAnswer given{
      .kind = PushAnswer::Kind::kApplied, .staleness = 0, .workers = ranks, .reason = {}};
  if (!adopt_speculation(ranks) && !apply_sum(ranks)) {
    given.kind = PushAnswer::Kind::kRejected;
    given.reason = "the sum of the round's gradients overflows";
  } else {
    ++counters.updates;
    counters.pushes += ranks.size();
    counters.staleness[0] += ranks.size();
    for (const Rank rank : ranks) ++members->at(rank).progress;
  }
  for (const Rank rank : ranks) answer(members->at(rank), given);
  if (!finished_training()) return;
  log("the last update has been made: " + std::to_string(model->version()));
  for (const Member& member : members->all()) send(member, ServerFrame::kFinished);
}

void ParameterServer::State::drop_late_pushes() {
  const std::uint64_t version = model->version();
  for (Member& member : members->all()) {
    if (member.replay.announcement && member.replay.announcement->base < version)
      member.replay.announcement.reset();
    const bool too_early = member.push.base > version && !recovering;
    if (member.push.whole && (member.push.base < version || too_early || finished_training())) {
      answer(member,
             {.kind = PushAnswer::Kind::kDropped, .staleness = 0, .workers = {}, .reason = {}});
    }
    if (member.leaving && !member.push.whole) finish_leave(member);
  }
}

// After a restart: a version that a worker has pulled, and nobody can make again as it was, stays
// the name of those values. Rounds go on with a number that nobody has seen, short of the last one.
void ParameterServer::State::skip_held_versions() {
  if (!initialized || spec->mode != ServerMode::kSync) return;
  std::uint64_t held = 0;
  for (const Member& member : members->all()) held = std::max(held, member.replay.holds);
  if (held <= model->version()) return;
  std::uint64_t next = held + 1;
  if (spec->total_updates > 0) {
    next = std::min(next, static_cast<std::uint64_t>(spec->total_updates) - 1);
  }
  if (next <= model->version()) return;
  log("nobody is left who could repeat the rounds between update " +
      std::to_string(model->version()) + " and " + std::to_string(next));
  skip_to(next);
  drop_late_pushes();
}

void ParameterServer::State::skip_to(std::uint64_t version) {
  ports.version_changes();
  skipped += version - model->version();
  model->set_version(version);
  snapshots.changes();
}

}  // namespace cohort::server
