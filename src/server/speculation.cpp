// An update that takes shape while its gradients are still coming in, and the values that are sent
// of it ahead of time: so the way to the server and the way back are used at once.
//
// A speculative update is nobody's model. It becomes the model in one step, when the last gradient
// is there and all that it was made of counts; whatever happens meanwhile, an update of others, a
// number that is not finite, somebody who goes, it is forgotten and the update made as if it had
// never been. The workers take what they are sent of it for values only once they are told that it
// stands.
#include <algorithm>

#include "server/numbers.h"
#include "server/server_state.h"
#include "server/wire_format.h"

namespace cohort::server {
namespace {

// Its own push may be whole already, and wait for others.
bool pulls_ahead(const Member& member) {
  return member.pull && member.connection && member.pull->which == 0 &&
         member.pull->after == member.push.sequence && member.push.arrived > 0;
}

}  // namespace

// Whose gradients the next update will be made of, if all goes on as it looks now. Nobody: that
// cannot be told, or nobody waits for its values.
std::vector<Rank> ParameterServer::State::speculation_ranks(const Member& member) const {
  if (no_speculation || spec->wire != WireFormat::kFloat32 || spec->delay_compensation > 0 ||
      !initialized || recovering || finished_training()) {
    return {};
  }
  std::vector<Rank> ranks;
  bool awaited = false;
  if (spec->mode != ServerMode::kSync) {
    if (others_push(member.worker)) return {};
    ranks = {member.worker};
    awaited = pulls_ahead(member) && in_bounds(member, member.clock + 1);
  } else if (spec->backup_workers == 0) {
    for (const Member& each : members->all()) {
      if (!each.was_present) return {};
      if (!each.live() || each.done()) continue;
      if (each.push.arrived == 0 || each.push.base != model->version()) return {};
      ranks.push_back(each.worker);
      awaited = awaited || pulls_ahead(each);
    }
  }
  for (const Rank rank : ranks) {
    if (!members->at(rank).push.finite) return {};
  }
  return awaited ? ranks : std::vector<Rank>();
}

// Of two that push at once one would be sent its values in vain.
bool ParameterServer::State::others_push(Rank worker) const {
  return std::any_of(members->all().begin(), members->all().end(), [&](const Member& other) {
    return other.worker != worker && other.push.arrived > 0;
  });
}

bool ParameterServer::State::speculation_holds() const {
  if (!speculation || speculation->version != model->version()) return false;
  return std::all_of(speculation->parts.begin(), speculation->parts.end(),
                     [&](const Speculation::Part& part) {
                       const Member& member = members->at(part.worker);
                       return member.live() && member.incarnation == part.incarnation &&
                              member.push.sequence == part.sequence &&
                              member.push.cleared == part.cleared && member.push.finite;
                     });
}

void ParameterServer::State::speculate(const Member& member) {
  if (speculation && !speculation_holds()) speculation.reset();
  if (!speculation) {
    const std::vector<Rank> ranks = speculation_ranks(member);
    if (ranks.empty()) return;
    materialize();
    for (const auto memory : model->second_copy()) memory_changes(memory);
    if (!model->begin_speculation(1.0 / static_cast<double>(ranks.size()))) {
      no_speculation = true;
      log("there is no memory for a second copy of the model: values are sent when all "
          "gradients are there");
      return;
    }
    speculation = Speculation{.parts = {}, .version = model->version()};
    for (const Rank rank : ranks) {
      Member& each = members->at(rank);
      speculation->parts.push_back({rank, each.incarnation, each.push.sequence, each.push.cleared});
      if (each.pull) each.pull->early = 0;
    }
  }
  if (spec->mode != ServerMode::kSync && others_push(speculation->parts.front().worker)) return;
  auto ready = static_cast<std::size_t>(spec->size);
  for (const Speculation::Part& part : speculation->parts) {
    ready = std::min(ready, static_cast<std::size_t>(members->at(part.worker).push.arrived));
  }
  do {
    for (const Speculation::Part& part : speculation->parts) send_early(members->at(part.worker));
  } while (model->speculated() + options.speculation_stretch <= ready && extend_speculation());
}

// By one stretch; false when its gradients cannot be used, and with it the speculation.
bool ParameterServer::State::extend_speculation() {
  const std::size_t place = model->speculated();
  const std::size_t count =
      std::min(options.speculation_stretch, static_cast<std::size_t>(spec->size) - place);
  std::span<float> sum = std::span(members->at(speculation->parts.front().worker).push.gradients)
                             .subspan(place, count);
  if (speculation->parts.size() > 1) {
    stretch.assign(sum.begin(), sum.end());
    sum = stretch;
    for (std::size_t i = 1; i < speculation->parts.size(); ++i) {
      const Member& other = members->at(speculation->parts[i].worker);
      add_to(sum, std::span(other.push.gradients).subspan(place, count));
    }
    if (!all_finite(sum)) {
      speculation.reset();
      return false;
    }
  }
  model->extend_speculation(sum);
  return true;
}

void ParameterServer::State::send_early(Member& member) {
  if (!pulls_ahead(member) || !in_bounds(member, member.clock + 1)) return;
  const std::size_t at_most = ports.piece_bytes(*member.connection) / sizeof(float);
  const std::span<const float> values = model->speculative_parameters();
  for (std::size_t& place = member.pull->early; place < values.size();) {
    const auto part = values.subspan(place, std::min(at_most, values.size() - place));
    network::FrameHeader header;
    header.sequence = member.pull->id;
    header.place = place;
    header.detail = low_bits(speculation->version + 1);
    place += part.size();
    send(member, ServerFrame::kEarlyValues, header, std::as_bytes(part), network::Kept::kLent);
  }
}

// Whether the update by exactly these was made ahead of time: then it is made now.
bool ParameterServer::State::adopt_speculation(const std::vector<Rank>& ranks) {
  const bool fits =
      speculation_holds() &&
      std::equal(ranks.begin(), ranks.end(), speculation->parts.begin(), speculation->parts.end(),
                 [](Rank rank, const Speculation::Part& part) { return rank == part.worker; });
  while (fits && speculation && model->speculated() < static_cast<std::size_t>(spec->size))
    extend_speculation();
  const bool adopted = fits && speculation;
  speculation.reset();
  if (!adopted) return false;
  send_the_rest();  // of the copy that is the model now
  ports.version_changes();
  model->adopt_speculation();
  ++counters.speculative;
  for (const Rank rank : ranks) {
    Member& member = members->at(rank);
    if (member.pull && member.pull->early > 0) member.pull->stands_at = model->version();
  }
  return true;
}

}  // namespace cohort::server
