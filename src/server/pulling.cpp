#include <algorithm>

#include "core/error.h"
#include "server/numbers.h"
#include "server/server_state.h"
#include "server/wire_format.h"

namespace cohort::server {

void ParameterServer::State::on_pull(Member& member, const network::FrameHeader& header) {
  const bool known = header.detail <= model->slot_count() || names_parameters(header.detail);
  if (!known) {
    throw PeerError("worker " + std::to_string(member.worker) + " asked for vector " +
                    std::to_string(header.detail) + ", which there is not");
  }
  // Who asks for values from before its push does not wait for that any more: it was interrupted.
  if (member.push.whole && header.place < member.push.sequence) member.push.clear();
  const bool amid = member.push.arrived > 0 && !member.push.whole;
  const bool ahead = header.place > member.applied && !member.push.whole;
  if (header.place > member.applied + 1 || (amid && !ahead) || (ahead && header.detail != 0)) {
    throw PeerError("worker " + std::to_string(member.worker) + " asked for values amid a push");
  }
  member.pull = WaitingPull{.id = header.sequence,
                            .which = header.detail,
                            .after = header.place,
                            .since = roster.now(),
                            .early = 0,
                            .stands_at = {}};
  if (may_read(member)) {
    send_values(member);
  } else if (member.only_pulls()) {
    examine_rounds();  // in recovery: it has nothing more to repeat
  } else if (amid) {
    speculate(member);
  }
  if (member.done()) examine_pulls();
}

bool ParameterServer::State::may_read(const Member& member) const {
  if (!initialized || recovering || member.push.whole) return false;
  if (member.pull && !member.only_pulls()) return false;
  if (member.pull && member.pull->which == kPullWhenAlone && others_may_push(member)) return false;
  // The bound is for values to train on.
  return (member.pull && member.pull->which != 0) || in_bounds(member, member.clock);
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
    const bool late = roster.now() - member.pull->since < options.late_start;
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
  if (!member.connection) return;
  while (member.reading) send_piece(member);
  const bool parameters = names_parameters(pull.which);
  member.reading = Reading{
      .id = pull.id,
      .which = pull.which,
      .version = model->version(),
      .place = parameters && pull.stands_at == model->version() ? pull.early : 0,
  };
  if (spec->delay_compensation > 0 && parameters) {
    materialize();
    const std::span<const float> values = model->parameters();
    member.pulled.assign(values.begin(), values.end());
  }
  if (pull.which == kExactParameters || pull.which == kPullWhenAlone) send_progress(member);
  send_piece(member);  // whoever watches sees what is answered, and when
  go_on_sending(member);
}

void ParameterServer::State::send_progress(const Member& member) {
  std::vector<std::uint64_t> counts;
  Rank first = member.worker;
  for (const Member& each : members->all()) {
    counts.push_back(each.progress);
    const bool left = each.presence == Member::Presence::kLeft;
    const bool lost = left ? each.leave != membership::LeaveKind::kDone : !each.connection;
    if (!lost) first = std::min(first, each.worker);
  }
  network::FrameHeader header;
  header.sequence = model->version();
  header.place = skipped;
  header.detail = static_cast<std::uint32_t>(first);
  send(member, ServerFrame::kProgress, header, encode_counts(counts));
}

void ParameterServer::State::go_on_sending(Member& member) {
  while (member.reading && ports.has_room(*member.connection)) send_piece(member);
}

void ParameterServer::State::send_the_rest() {
  for (Member& member : members->all()) {
    while (member.reading) send_piece(member);
  }
}

// Computed as late as that, values are still in the processor's cache when they are sent.
void ParameterServer::State::send_piece(Member& member) {
  const Reading reading = *member.reading;
  const WireFormat format = reading.which == 0 ? spec->wire : WireFormat::kFloat32;
  const auto size = static_cast<std::size_t>(spec->size);
  const std::size_t at_most = ports.piece_bytes(*member.connection) / bytes_each(format);
  const std::size_t end = std::min(reading.place + at_most, size);
  materialize(reading.version, end);
  const std::span<const float> values =
      names_parameters(reading.which) ? model->parameters() : model->slot(reading.which - 1);
  const std::span<const float> part = values.subspan(reading.place, end - reading.place);
  network::FrameHeader header;
  header.sequence = reading.id;
  header.place = reading.place;
  header.detail = low_bits(reading.version);
  if (format == WireFormat::kFloat32) {
    send(member, ServerFrame::kValues, header, std::as_bytes(part), network::Kept::kLent);
  } else {
    scratch.resize(part.size() * bytes_each(format));
    encode_floats(format, part, scratch);
    send(member, ServerFrame::kValues, header, scratch, network::Kept::kCopy);
  }
  member.reading->place = end;
  if (end == size) member.reading.reset();
}

}  // namespace cohort::server
