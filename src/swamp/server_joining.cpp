#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "swamp/registry.h"
#include "swamp/server_state.h"

namespace cohort::swamp {
void BestModelServer::State::on_join(membership::ConnectionId connection,
                                     const network::FrameHeader& header,
                                     std::span<const std::byte> payload) {
  const auto asked = roster.asked(connection, payload);
  if (!asked) return;
  const auto& [worker, request] = *asked;
  if (given_up) return roster.refuse(connection, *given_up);
  if (request.lineage != 0 && request.lineage != lineage) {
    return roster.refuse(connection,
                         "the best-model server was restarted without its state (start it with "
                         "--state-dir); the run cannot go on");
  }
  if (!accept_spec(connection, worker, request.job)) return;
  Member& member = members[static_cast<std::size_t>(worker)];
  if (header.incarnation == 0) return roster.join_anew(connection, member, header);
  if (!roster.return_with(connection, member, header)) return;
  member.disconnect();     // from what it had asked for
  member.leaving = false;  // it says so again
  send_joined(member);
}

bool BestModelServer::State::accept_spec(membership::ConnectionId connection, Rank worker,
                                         const std::string& text) {
  if (spec && text == spec_text && roster.find(worker) != nullptr) return true;
  std::string wrong;
  try {
    auto given = std::make_unique<SwampSpec>(swamp_spec_from(text));
    if (worker < 0 || worker >= given->workers) {
      wrong = "there is no " + membership::named(worker) + " in a swamp of " +
              std::to_string(given->workers);
    } else if (wrong = differences_from_told(settings.told, *given); !wrong.empty()) {
    } else if (spec) {
      wrong = differences(*spec, *given);
    } else {
      PolicyOptions options = settings.policy;
      options.hysteresis = given->hysteresis;
      policy = swamp_policies().make(given->policy, options, BestRecord{});
      spec_text = swamp::to_json(*given).dump();
      spec = std::move(given);
      open_roster();
    }
  } catch (const PeerError& error) {
    wrong = error.what();
  }
  if (wrong.empty()) return true;
  roster.refuse(connection, wrong);
  return false;
}

void BestModelServer::State::open_roster() {
  members.resize(static_cast<std::size_t>(spec->workers));
  std::vector<membership::MemberRow*> rows;
  for (Member& member : members) {
    member.worker = static_cast<Rank>(rows.size());
    rows.push_back(&member);
  }
  roster.open(std::move(rows));
}

std::uint64_t BestModelServer::State::joining(membership::MemberRow& row, std::uint64_t) {
  at(row).renew();
  snapshots.changes();
  return job_is_kept ? 0 : request_snapshot();
}

void BestModelServer::State::send_joined(const Member& member) {
  JoinedSwamp body{.initialized = initialized || initial.whole, .known = {}};
  for (const std::uint64_t sequence : member.held) body.known.push_back(sequence);
  for (const auto& [sequence, verdict] : member.verdicts) body.known.push_back(sequence);
  send(member, static_cast<SwampFrame>(membership::MemberFrame::kJoined), {},
       membership::encode_joined(lineage, encode(body)));
  for (const auto& [sequence, verdict] : member.verdicts) send_verdict(member, verdict);
}

// Where a frame of initial values belongs; nothing where it is not the next one.
std::span<float> BestModelServer::State::initial_place(const Member& member,
                                                       const network::FrameHeader& header,
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

void BestModelServer::State::on_initial(Member& member, const network::FrameHeader& header,
                                        std::span<const std::byte> payload) {
  if (member.worker == 0 && (initialized || initial.whole)) return;
  const std::span<float> place = initial_place(member, header, payload.size());
  if (place.empty() || place.size_bytes() != payload.size()) {
    throw PeerError(membership::named(member.worker) + " sent initial values that do not fit");
  }
  if (static_cast<const void*>(place.data()) != payload.data()) {
    std::memcpy(place.data(), payload.data(), payload.size());
  }
  initial.arrived = static_cast<std::int64_t>(header.place + place.size());
  if (initial.arrived < spec->values) return;
  if (!std::all_of(initial.values->begin(), initial.values->end(),
                   [](float value) { return std::isfinite(value); })) {
    initial = {};
    return roster.refuse(*member.connection, "the initial values hold numbers that are not finite");
  }
  initial.whole = true;
  snapshots.changes();
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

}  // namespace cohort::swamp
