#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "server/client_state.h"
#include "server/numbers.h"
#include "server/wire_format.h"

namespace cohort {

void ShardClient::State::broken(const std::string& what) const {
  throw PeerError("server " + std::to_string(options.spec.server) + " " + what);
}

void ShardClient::State::on_joined(std::span<const std::byte> payload) {
  const JoinedBody told = decode_joined(payload);
  if (joined) broken("answered a join twice");
  if (told.incarnation == 0 || (incarnation != 0 && told.incarnation != incarnation)) {
    broken("changed this worker's incarnation");
  }
  body = told;
  if (push_fenced) settle_fenced_push();
  fenced = 0;
  incarnation = told.incarnation;
  lineage = told.lineage;
  known_version = told.version;
  joined = true;
  // The numbers of a new incarnation begin at 1, whatever the server says that it has of it.
  trim(told.durable);
  replayed = told.applied;
  repeat.reset();
  pump();
}

void ShardClient::State::trim(std::uint64_t up_to) {
  if (!body.keeps_state) return;
  durable = std::max(durable, up_to);
  if (window.trim(durable)) snapshot_asked = false;
}

void ShardClient::State::on_answer(ServerFrame type, const FrameHeader& header,
                                   std::span<const std::byte> payload) {
  const std::uint64_t number = header.sequence;
  if (number > sequence) broken("answered a push that was not made");
  std::vector<Rank> workers;
  if (type == ServerFrame::kAck && options.spec.mode == ServerMode::kSync) {
    workers = decode_workers(payload, options.spec.workers);
  }
  if (repeat && number >= *repeat) repeat.reset();
  if (push_open() && number == push.sequence && push.whole) {
    PushOutcome given;
    if (type == ServerFrame::kAck) {
      given.staleness = header.detail;
    } else if (type == ServerFrame::kDropped) {
      given.kind = PushOutcome::Kind::kDropped;
    } else {
      given.kind = PushOutcome::Kind::kRejected;
      given.reason.assign(reinterpret_cast<const char*>(payload.data()),
                          std::min<std::size_t>(payload.size(), 4096));
    }
    settle_push(std::move(given), std::move(workers));
  }
  if (type == ServerFrame::kAck) trim(header.place);
  if (body.keeps_state && window.bytes() > options.window_bytes / 2) ask_for_snapshot();
  pump();
}

void ShardClient::State::settle_push(PushOutcome given, std::vector<Rank> workers) {
  answered = push.sequence;
  replayed = std::max(replayed, push.sequence);
  if (body.keeps_state && push.sequence > durable) {
    if (given.kind == PushOutcome::Kind::kApplied) {
      window.add(push.sequence, push.base, push.gradients, std::move(workers));
    } else {
      window.add_refused(push.sequence);
    }
  }
  outcome = std::move(given);
}

// Evicted or replaced. What was pushed and answered has to be on disk before a new incarnation is
// given out; so it is the answer to the join that tells whether an unanswered push is in the model.
void ShardClient::State::on_fenced() {
  ++rejoined;
  joined = false;
  fenced = incarnation;
  incarnation = answered = replayed = durable = 0;
  push_fenced = push_open();
  if (!push_fenced) push = {}, sequence = 0;
  repeat.reset();
  window.clear();
  snapshot_asked = leave_sent = initial_sent = false;
  pull.asked = false;
  send_join();
}

void ShardClient::State::settle_fenced_push() {
  outcome = PushOutcome{.kind = PushOutcome::Kind::kFenced, .staleness = 0, .reason = {}};
  if (push.sequence <= body.applied_before && body.in_model_before) {
    outcome->kind = PushOutcome::Kind::kApplied;
  }
  push = {};
  sequence = 0;
  push_fenced = false;
}

WireFormat ShardClient::State::format_of_pull() const {
  return pull.which == 0 ? options.spec.wire : WireFormat::kFloat32;
}

// Whether the frame's elements are the next ones of the pull.
bool ShardClient::State::follows(const FrameHeader& header, std::size_t bytes) const {
  const auto size = static_cast<std::uint64_t>(options.spec.size);
  const std::size_t count = bytes / bytes_each(format_of_pull());
  if (bytes % bytes_each(format_of_pull()) != 0 || (count == 0 && size != 0)) return false;
  if (header.place != static_cast<std::uint64_t>(pull.arrived)) return false;
  if (header.place > size || count > size - header.place) return false;
  return pull.arrived == 0 || header.detail == pull.version;
}

void ShardClient::State::on_values(const FrameHeader& header, std::span<const std::byte> payload) {
  if (!pull.wanted || !pull.asked || header.sequence < pull.id) return;  // of an earlier pull
  if (header.sequence > pull.id) broken("sent values that were not asked for");
  if (push_open()) broken("sent values before it had answered the push");
  if (!follows(header, payload.size())) broken("sent values that do not follow on those before");
  const std::size_t each = bytes_each(format_of_pull());
  for (auto rest = payload; !rest.empty();) {
    const std::span<float> place =
        pull.into.at(static_cast<std::size_t>(pull.arrived), rest.size() / each);
    const auto bytes = rest.first(place.size() * each);
    const bool in_place = static_cast<const void*>(place.data()) == bytes.data();
    if (!in_place || format_of_pull() != WireFormat::kFloat32) {
      decode_floats(format_of_pull(), bytes, place);
    }
    pull.arrived += static_cast<std::int64_t>(place.size());
    rest = rest.subspan(bytes.size());
  }
  pull.version = header.detail;
  if (pull.arrived < options.spec.size) return;
  pull.wanted = false;
  known_version = version_near(known_version, header.detail);
  if (names_parameters(pull.which)) version = known_version;
  initial = {};
  body.initialized = true;
  pump();
}

void ShardClient::on_connected(Deadline) {
  State& state = *state_;
  state.connected = true;
  state.joined = false;
  state.push.sent = 0;
  state.push.whole = false;
  state.pull.asked = false;
  state.leave_sent = state.initial_sent = state.snapshot_asked = false;
  if (!state.refused && !state.left) state.send_join();
}

void ShardClient::on_lost(Deadline) {
  state_->connected = false;
  state_->joined = false;
}

std::optional<std::span<std::byte>> ShardClient::place_for(const FrameHeader& header) {
  const State& state = *state_;
  if (header.type != static_cast<FrameType>(ServerFrame::kValues) || !state.pull.wanted ||
      !state.pull.asked || header.sequence != state.pull.id || state.push_open() ||
      header.incarnation != state.incarnation || state.format_of_pull() != WireFormat::kFloat32) {
    return {};
  }
  if (!state.follows(header, header.length)) return {};
  const auto place = std::as_writable_bytes(
      state.pull.into.at(static_cast<std::size_t>(header.place), header.length / sizeof(float)));
  // What lies in two stretches is put there by on_frame().
  if (place.size() != header.length || place.empty()) return {};
  return place;
}

void ShardClient::on_frame(const FrameHeader& header, std::span<const std::byte> payload,
                           Deadline) {
  State& state = *state_;
  const auto type = static_cast<ServerFrame>(header.type);
  if (type == ServerFrame::kRefused) {
    state.refused = std::string(reinterpret_cast<const char*>(payload.data()),
                                std::min<std::size_t>(payload.size(), 4096));
    return;
  }
  if (type == ServerFrame::kJoined) return state.on_joined(payload);
  if (header.incarnation != state.incarnation) return;
  if (type == ServerFrame::kFenced) return state.on_fenced();
  if (!state.joined) state.broken("spoke before it had answered the join");
  switch (type) {
    case ServerFrame::kAck:
    case ServerFrame::kDropped:
    case ServerFrame::kRejected:
      return state.on_answer(type, header, payload);
    case ServerFrame::kDurable:
      state.trim(header.place);
      return state.pump();
    case ServerFrame::kValues:
      return state.on_values(header, payload);
    case ServerFrame::kFinished:
      state.finished = true;
      return;
    case ServerFrame::kGoodbye:
      if (state.leave_sent) state.left = true;
      return;
    default:
      state.broken("sent a frame of the unknown type " + std::to_string(header.type));
  }
}

}  // namespace cohort
