#include <algorithm>

#include "core/error.h"
#include "server/numbers.h"
#include "server/server_state.h"
#include "server/wire_format.h"

namespace cohort {

void ParameterServer::State::on_pull(Member& member, const FrameHeader& header) {
  const bool known = header.detail <= model->slot_count() || names_parameters(header.detail);
  if (!known) {
    throw PeerError("worker " + std::to_string(member.worker) + " asked for vector " +
                    std::to_string(header.detail) + ", which there is not");
  }
  const bool amid = member.push.arrived > 0 && !member.push.whole;
  const bool ahead = header.place > member.applied && !member.push.whole;
  if (header.place > member.applied + 1 || (amid && !ahead) || (ahead && header.detail != 0)) {
    throw PeerError("worker " + std::to_string(member.worker) + " asked for values amid a push");
  }
  member.pull = WaitingPull{.id = header.sequence,
                            .which = header.detail,
                            .after = header.place,
                            .since = now,
                            .early = 0,
                            .stands_at = {}};
  if (may_read(member)) {
    send_values(member);
  } else if (member.only_pulls()) {
    examine_rounds();  // in recovery: it has nothing more to repeat
  } else if (amid) {
    look_at_draft(member);
  }
  if (member.done()) examine_pulls();
}

bool ParameterServer::State::may_read(const Member& member) const {
  if (!initialized || recovering || member.push.whole) return false;
  if (member.pull && !member.only_pulls()) return false;
  if (member.pull && member.pull->which == kPullWhenAlone && others_may_push(member)) return false;
  return in_bounds(member, member.clock);
}

bool ParameterServer::State::in_bounds(const Member& member, std::uint64_t clock) const {
  if (spec->mode != ServerMode::kBounded || !member.live()) return true;
  const std::uint64_t smallest = members->min_clock(member.worker).value_or(clock);
  return clock <= smallest || clock - smallest <= static_cast<std::uint64_t>(spec->staleness);
}

bool ParameterServer::State::others_may_push(const Member& member) const {
  for (const Member& other : members->all()) {
    if (other.worker == member.worker || other.done()) continue;
    if (other.live() || other.presence == Member::Presence::kJoining) return true;
    const bool late = now - member.pull->since < options.late_start;
    if (other.presence == Member::Presence::kNever && late) return true;
  }
  return false;
}

void ParameterServer::State::examine_pulls() {
  for (Member& member : members->all()) {
    if (member.pull && may_read(member)) send_values(member);
  }
}

void ParameterServer::State::send_values(Member& member) {
  const WaitingPull pull = *member.pull;
  member.ended = pull.which == kPullWhenAlone;
  member.pull.reset();
  const bool parameters = names_parameters(pull.which);
  const auto size = static_cast<std::size_t>(spec->size);
  const WireFormat format = pull.which == 0 ? spec->wire : WireFormat::kFloat32;
  if (!member.connection) return;
  const std::size_t at_most = ports.piece_bytes(*member.connection) / bytes_each(format);
  std::size_t place = parameters && pull.stands_at == model->version() ? pull.early : 0;
  do {
    const std::size_t end = std::min(place + at_most, size);
    // Each piece goes out as soon as it is computed.
    const std::span<const float> values =
        parameters ? model->settle(end) : model->slot(pull.which - 1).first(end);
    const std::span<const float> part = values.subspan(place);
    FrameHeader header;
    header.sequence = pull.id;
    header.place = place;
    header.detail = low_bits(model->version());
    if (format == WireFormat::kFloat32) {
      send(member, ServerFrame::kValues, header, std::as_bytes(part), Kept::kLent);
    } else {
      scratch.resize(part.size() * bytes_each(format));
      encode_floats(format, part, scratch);
      send(member, ServerFrame::kValues, header, scratch, Kept::kCopy);
    }
    place = end;
  } while (place < size);
  if (spec->delay_compensation > 0 && parameters) {
    const std::span<const float> values = model->parameters();
    member.pulled.assign(values.begin(), values.end());
  }
}

}  // namespace cohort
