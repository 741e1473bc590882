#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "server/client_state.h"
#include "server/numbers.h"
#include "server/wire_format.h"

namespace cohort::server {

void ShardClient::State::on_joined(std::span<const std::byte> payload) {
  const JoinedBody told = decode_joined(membership::joined_rest(payload));
  body = told;
  if (push_fenced) resolve_fenced_push();
  going_back = false;
  known_version = told.version;
  // The numbers of a new incarnation begin at 1, whatever the server says that it has of it.
  trim(told.durable);
  replayed = heard_of = told.applied;
  repeat.reset();
  pump();
}

void ShardClient::State::trim(std::uint64_t up_to) {
  if (!body.keeps_state) return;
  durable = std::max(durable, up_to);
  if (window.trim(durable)) snapshot_asked = false;
}

void ShardClient::State::on_answer(ServerFrame type, const network::FrameHeader& header,
                                   std::span<const std::byte> payload) {
  const std::uint64_t number = header.sequence;
  if (number > sequence) broken("answered a push that was not made");
  std::vector<Rank> workers;
  if (type == ServerFrame::kAck && options.spec.mode == ServerMode::kSync) {
    workers = decode_workers(payload, options.spec.workers);
  }
  if (repeat && number >= *repeat) repeat.reset();
  heard_of = std::max(heard_of, number);
  if (unanswered() && number == push.sequence && push.whole) {
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
    resolve_push(std::move(given), std::move(workers));
  }
  if (type == ServerFrame::kAck) trim(header.place);
  if (body.keeps_state && window.bytes() > options.window_bytes / 2) ask_for_snapshot();
  pump();
}

void ShardClient::State::resolve_push(PushOutcome given, std::vector<Rank> workers) {
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
  answered = heard_of = replayed = durable = 0;
  push_fenced = unanswered();
  if (!push_fenced) push = {}, sequence = 0;
  repeat.reset();
  window.clear();
  snapshot_asked = initial_sent = false;
  pull.asked = false;
  send_join();
}

void ShardClient::State::resolve_fenced_push() {
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

std::optional<std::int64_t> ShardClient::State::next_place(
    const network::FrameHeader& header) const {
  if (header.type == static_cast<network::FrameType>(ServerFrame::kEarlyValues)) {
    if (!push_open() || pull.which != 0) return std::nullopt;
    if (header.place == 0) return 0;  // a new speculative update, if it is not the first
    return header.detail == pull.version ? std::optional(pull.early) : std::nullopt;
  }
  if (push_open()) return std::nullopt;
  if (pull.arrived > 0) {
    return header.detail == pull.version ? std::optional(pull.arrived) : std::nullopt;
  }
  // What came ahead of time stands when the rest goes on where it ended.
  const bool stands = header.place > 0 && header.detail == pull.version;
  return stands ? pull.early : 0;
}

// Whether the frame's elements are the next ones of the pull.
bool ShardClient::State::follows(const network::FrameHeader& header, std::size_t bytes) const {
  const auto size = static_cast<std::uint64_t>(options.spec.size);
  const std::size_t count = bytes / bytes_each(format_of_pull());
  const std::optional<std::int64_t> place = next_place(header);
  if (!place || header.place != static_cast<std::uint64_t>(*place)) return false;
  if (bytes % bytes_each(format_of_pull()) != 0) return false;
  return header.place <= size && count <= size - header.place &&
         (count > 0 || header.place == size);
}

void ShardClient::State::put_values(std::int64_t place, std::span<const std::byte> payload) {
  const std::size_t each = bytes_each(format_of_pull());
  for (auto rest = payload; !rest.empty();) {
    const std::span<float> to = pull.into.at(static_cast<std::size_t>(place), rest.size() / each);
    const auto bytes = rest.first(to.size() * each);
    const bool in_place = static_cast<const void*>(to.data()) == bytes.data();
    if (!in_place || format_of_pull() != WireFormat::kFloat32) {
      decode_floats(format_of_pull(), bytes, to);
    }
    place += static_cast<std::int64_t>(to.size());
    rest = rest.subspan(bytes.size());
  }
}

void ShardClient::State::on_early_values(const network::FrameHeader& header,
                                         std::span<const std::byte> payload) {
  if (!pull.wanted || !pull.asked || header.sequence < pull.id) return;  // of an earlier pull
  if (header.sequence > pull.id) broken("sent values that were not asked for");
  if (!push_open()) broken("sent values ahead of a push that it had answered");
  if (!follows(header, payload.size())) broken("sent values that do not follow on those before");
  const auto place = static_cast<std::int64_t>(header.place);
  put_values(place, payload);
  pull.early = place + static_cast<std::int64_t>(payload.size() / bytes_each(format_of_pull()));
  pull.version = header.detail;
}

void ShardClient::State::on_progress(const network::FrameHeader& header,
                                     std::span<const std::byte> payload) {
  const auto workers = static_cast<std::uint32_t>(options.spec.workers);
  ModelProgress told{.version = header.sequence,
                     .skipped = header.place,
                     .pushes = decode_counts(payload),
                     .first = static_cast<Rank>(std::min(header.detail, workers))};
  if (told.pushes.size() != workers || told.skipped > told.version || header.detail >= workers) {
    broken("sent counts that are none of this job");
  }
  progress = std::move(told);
}

void ShardClient::State::on_values(const network::FrameHeader& header,
                                   std::span<const std::byte> payload) {
  if (!pull.wanted || !pull.asked || header.sequence < pull.id) return;  // of an earlier pull
  if (header.sequence > pull.id) broken("sent values that were not asked for");
  if (push_open()) broken("sent values before it had answered the push");
  if (!follows(header, payload.size())) broken("sent values that do not follow on those before");
  const auto place = static_cast<std::int64_t>(header.place);
  put_values(place, payload);
  pull.arrived = place + static_cast<std::int64_t>(payload.size() / bytes_each(format_of_pull()));
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
  state.member.on_connected();
  state.push.sent = 0;
  state.push.whole = false;
  state.pull.asked = false;
  state.initial_sent = state.snapshot_asked = false;
  state.send_join();
}

void ShardClient::on_lost(Deadline) { state_->member.on_lost(); }

std::optional<std::span<std::byte>> ShardClient::place_for(const network::FrameHeader& header) {
  const State& state = *state_;
  const bool values = header.type == static_cast<network::FrameType>(ServerFrame::kValues) ||
                      header.type == static_cast<network::FrameType>(ServerFrame::kEarlyValues);
  if (!values || !state.pull.wanted || !state.pull.asked || header.sequence != state.pull.id ||
      header.incarnation != state.member.incarnation() ||
      state.format_of_pull() != WireFormat::kFloat32) {
    return {};
  }
  if (!state.follows(header, header.length)) return {};
  const auto place = std::as_writable_bytes(
      state.pull.into.at(static_cast<std::size_t>(header.place), header.length / sizeof(float)));
  // What lies in two stretches is put there by on_frame().
  if (place.size() != header.length || place.empty()) return {};
  return place;
}

void ShardClient::on_frame(const network::FrameHeader& header, std::span<const std::byte> payload,
                           Deadline) {
  State& state = *state_;
  const auto type = static_cast<ServerFrame>(header.type);
  switch (state.member.on_frame(header, payload)) {
    case membership::MembershipClient::Event::kNothing:
      return;
    case membership::MembershipClient::Event::kJoined:
      return state.on_joined(payload);
    case membership::MembershipClient::Event::kFenced:
      return state.on_fenced();
    case membership::MembershipClient::Event::kOther:
      break;
  }
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
    case ServerFrame::kEarlyValues:
      return state.on_early_values(header, payload);
    case ServerFrame::kProgress:
      return state.on_progress(header, payload);
    case ServerFrame::kFinished:
      state.finished = true;
      return;
    default:
      state.broken("sent a frame of the unknown type " + std::to_string(header.type));
  }
}

}  // namespace cohort::server
