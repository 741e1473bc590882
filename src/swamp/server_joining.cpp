#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "network/little_endian.h"
#include "swamp/registry.h"
#include "swamp/server_state.h"

namespace cohort {
namespace {

std::string named(Rank worker) { return "worker " + std::to_string(worker); }

}  // namespace

void BestModelServer::State::on_join(SwampConnection connection, const FrameHeader& header,
                                     std::span<const std::byte> payload) {
  const auto found = connections.find(connection);
  if (found == connections.end()) {
    ++counters.fenced;
    return;
  }
  const Rank worker = found->second.worker;
  const Member* joining = find(worker);
  const bool asked = found->second.joined || found->second.held_since ||
                     (joining != nullptr && joining->connection == connection &&
                      joining->presence == Presence::kJoining);
  if (asked) throw PeerError(named(worker) + " asked twice to join");
  if (payload.size() < sizeof lineage) {
    throw PeerError(named(worker) + " asked to join without a job");
  }
  if (given_up) return refuse(connection, *given_up);
  const auto known_lineage = get_number<std::uint64_t>(payload.data());
  if (known_lineage != 0 && known_lineage != lineage) {
    return refuse(connection,
                  "the best-model server was restarted without its state (start it with "
                  "--state-dir); the run cannot go on");
  }
  const std::span<const std::byte> text = payload.subspan(sizeof lineage);
  if (!accept_spec(connection, worker,
                   std::string(reinterpret_cast<const char*>(text.data()), text.size()))) {
    return;
  }
  Member& member = *find(worker);
  if (header.incarnation == 0) {
    hold_or_join(connection, member);
  } else {
    return_with(connection, member, header);
  }
}

bool BestModelServer::State::accept_spec(SwampConnection connection, Rank worker,
                                         const std::string& text) {
  if (spec && text == spec_text && find(worker) != nullptr) return true;
  std::string wrong;
  try {
    auto given = std::make_unique<SwampSpec>(swamp_spec_from(text));
    if (worker < 0 || worker >= given->workers) {
      wrong = "there is no " + named(worker) + " in a swamp of " + std::to_string(given->workers);
    } else if (wrong = differences_from_told(settings.told, *given); !wrong.empty()) {
    } else if (spec) {
      wrong = differences(*spec, *given);
    } else {
      PolicyOptions options = settings.policy;
      options.hysteresis = given->hysteresis;
      policy = swamp_policies().make(given->policy, options, BestRecord{});
      members.resize(static_cast<std::size_t>(given->workers));
      for (std::size_t i = 0; i < members.size(); ++i) members[i].worker = static_cast<Rank>(i);
      spec_text = cohort::to_json(*given).dump();
      spec = std::move(given);
    }
  } catch (const PeerError& error) {
    wrong = error.what();
  }
  if (wrong.empty()) return true;
  refuse(connection, wrong);
  return false;
}

void BestModelServer::State::refuse(SwampConnection connection, const std::string& why) {
  log(named(connections.at(connection).worker) + " is refused: " + why);
  FrameHeader header{.type = static_cast<FrameType>(SwampFrame::kRefused)};
  const std::string text = why.substr(0, 4096);
  header.length = static_cast<std::uint32_t>(text.size());
  ports.send(connection, header, std::as_bytes(std::span(text)), nullptr);
  forget(connection, "refused");  // why has been said
}

void BestModelServer::State::fence(SwampConnection connection, std::uint64_t incarnation) {
  ++counters.fenced;
  FrameHeader fenced{.type = static_cast<FrameType>(SwampFrame::kFenced)};
  fenced.incarnation = incarnation;
  ports.send(connection, fenced, {}, nullptr);
}

// The connection is new, the worker is not.
void BestModelServer::State::return_with(SwampConnection connection, Member& member,
                                         const FrameHeader& header) {
  if (header.incarnation != member.incarnation || member.presence == Presence::kJoining) {
    return fence(connection, header.incarnation);
  }
  if (member.connection && member.connection != connection) {
    forget(*member.connection, "replaced by a new connection");
  }
  stay();
  if (member.presence == Presence::kEvicted) log(named(member.worker) + " is back");
  if (member.presence != Presence::kLeft) member.presence = Presence::kPresent;
  member.was_present = true;
  member.incoming = {};
  member.pull.reset();
  member.leaving = false;  // it says so again
  member.connection = connection;
  member.last_heard = now;
  connections.at(connection).joined = true;
  send_joined(member);
}

// Either the worker was restarted, or its rank was started twice; the old connection shows which,
// by whether anything more is heard of it.
void BestModelServer::State::hold_or_join(SwampConnection connection, Member& member) {
  // One that has left may not have got its goodbye yet.
  const bool there = member.presence == Presence::kPresent || member.presence == Presence::kLeft;
  Connection& own = connections.at(connection);
  // One that waits already, waits a little more: the process may be about to connect again.
  const bool alive =
      there &&
      (member.connection ? now - member.last_heard <= settings.evict_after
                         : own.held_since && now - member.lost_at <= settings.evict_unconnected);
  if (!own.held_since) own.held_since = now;
  if (!alive) {
    // A process that is stopped gets no place that another one, which is awake, would have to lose.
    if (now - own.last_heard > settings.evict_after / 2) return;
    own.held_since.reset();
    return join_anew(connection, member);
  }
  const bool clear = now - *own.held_since > settings.evict_after * 3 / 2;
  if (clear && now - member.last_heard <= settings.evict_after / 2) {
    refuse(connection, named(member.worker) + " is already there");
  }
}

void BestModelServer::State::examine_held() {
  std::vector<SwampConnection> held;
  for (const auto& [id, connection] : connections) {
    if (connection.held_since) held.push_back(id);
  }
  std::sort(held.rbegin(), held.rend());  // the latest first
  for (const SwampConnection id : held) {
    const auto found = connections.find(id);
    if (found == connections.end()) continue;
    Member& member = *find(found->second.worker);
    const bool taken = member.presence == Presence::kJoining && member.connection;
    if (!taken) hold_or_join(id, member);
  }
}

void BestModelServer::State::join_anew(SwampConnection connection, Member& member) {
  if (member.connection && member.connection != connection) {
    forget(*member.connection, "replaced by a new process");
  }
  // Random, and of another seed after a restart: no number is given twice, without asking the disk.
  const auto worker = static_cast<std::uint64_t>(member.worker);
  member.renew(derive_seed(settings.seed, "swamp incarnation", {worker, ++incarnations}) | 1U);
  stay();
  member.presence = Presence::kJoining;
  member.connection = connection;
  member.last_heard = now;
  changed = true;
  if (job_is_kept) {
    activate(member);
  } else {
    request_snapshot();
  }
}

void BestModelServer::State::stay() {
  gone_since.reset();
  ending.reset();
  finished.reset();
}

void BestModelServer::State::activate(Member& member) {
  if (!member.connection) {
    member.presence = member.was_present ? Presence::kEvicted : Presence::kNever;
    return;
  }
  member.presence = Presence::kPresent;
  member.was_present = true;
  connections.at(*member.connection).joined = true;
  log(named(member.worker) + " has joined; " + text());
  send_joined(member);
}

void BestModelServer::State::send_joined(const Member& member) {
  JoinedSwamp body{.incarnation = member.incarnation,
                   .lineage = lineage,
                   .initialized = initialized || initial.whole,
                   .known = {}};
  for (const std::uint64_t sequence : member.held) body.known.push_back(sequence);
  for (const auto& [sequence, verdict] : member.verdicts) body.known.push_back(sequence);
  send(member, SwampFrame::kJoined, {}, encode(body));
  for (const auto& [sequence, verdict] : member.verdicts) send_verdict(member, verdict);
}

// Where a frame of initial values belongs; nothing where it is not the next one.
std::span<float> BestModelServer::State::initial_place(const Member& member,
                                                       const FrameHeader& header,
                                                       std::size_t bytes) {
  if (member.worker != 0 || initialized || initial.whole || bytes % sizeof(float) != 0) return {};
  if (header.place != 0 && header.place != static_cast<std::uint64_t>(initial.arrived)) return {};
  const auto size = static_cast<std::uint64_t>(spec->values);
  const std::size_t count = bytes / sizeof(float);
  if (header.place > size || count > size - header.place) return {};
  if (!initial.values) {
    initial.values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(size));
  }
  return std::span(*initial.values).subspan(static_cast<std::size_t>(header.place), count);
}

void BestModelServer::State::on_initial(Member& member, const FrameHeader& header,
                                        std::span<const std::byte> payload) {
  if (member.worker == 0 && (initialized || initial.whole)) return;
  const std::span<float> place = initial_place(member, header, payload.size());
  if (place.empty() || place.size_bytes() != payload.size()) {
    throw PeerError(named(member.worker) + " sent initial values that do not fit");
  }
  if (static_cast<const void*>(place.data()) != payload.data()) {
    std::memcpy(place.data(), payload.data(), payload.size());
  }
  initial.arrived = static_cast<std::int64_t>(header.place + place.size());
  if (initial.arrived < spec->values) return;
  if (!std::all_of(initial.values->begin(), initial.values->end(),
                   [](float value) { return std::isfinite(value); })) {
    initial = {};
    return refuse(*member.connection, "the initial values hold numbers that are not finite");
  }
  initial.whole = true;
  changed = true;
  if (settings.keeps_state) {
    initial.needs = request_snapshot();
  } else {
    initial_counts();
  }
}

void BestModelServer::State::initial_counts() {
  initialized = true;
  log("the initial values are there");
  examine_pulls();
}

}  // namespace cohort
