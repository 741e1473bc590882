#include "server/shard_client.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "server/client_state.h"
#include "server/numbers.h"
#include "server/wire_format.h"

namespace cohort::server {

ShardClient::State::State(const ClientOptions& given, ClientPorts& given_ports)
    : options(given),
      ports(given_ports),
      member(membership::Conversation::kParameters, "server " + std::to_string(given.spec.server),
             to_json(given.spec).dump(),
             [this](const network::FrameHeader& header, std::span<const std::byte> payload) {
               ports.send(header, payload, network::Kept::kCopy);
             }) {}

void ShardClient::State::send(ServerFrame type, network::FrameHeader header,
                              std::span<const std::byte> payload, network::Kept kept) {
  header.type = static_cast<network::FrameType>(type);
  header.length = static_cast<std::uint32_t>(payload.size());
  header.incarnation = member.incarnation();
  ports.send(header, payload, kept);
}

void ShardClient::State::send_join() {
  network::FrameHeader header;
  header.sequence = answered;
  header.detail = low_bits(version);
  member.ask(going_back ? membership::JoinKind::kGoBack : options.join, header);
}

void ShardClient::State::send_vector(std::uint32_t which, const ArenaView<const float>& values) {
  std::size_t place = 0;
  do {
    const auto part = values.at(place, ports.piece_bytes() / sizeof(float));
    network::FrameHeader header;
    header.detail = which;
    header.place = place;
    send(ServerFrame::kInitialize, header, std::as_bytes(part), network::Kept::kLent);
    place += part.size();
  } while (place < values.size());
}

void ShardClient::State::send_initial() {
  initial_sent = true;
  send_vector(0, initial.parameters);
  for (std::size_t i = 0; i < initial.slots.size(); ++i) {
    send_vector(static_cast<std::uint32_t>(i + 1), initial.slots[i]);
  }
  network::FrameHeader header;
  header.sequence = initial.behind.version;
  send(ServerFrame::kInitialized, header, encode_counts(initial.behind.pushes));
}

void ShardClient::State::send_part(network::FrameHeader header, std::span<const float> part,
                                   network::Kept kept) {
  if (options.spec.wire == WireFormat::kFloat32) {
    return send(ServerFrame::kPush, header, std::as_bytes(part), kept);
  }
  scratch.resize(part.size() * bytes_each(options.spec.wire));
  encode_floats(options.spec.wire, part, scratch);
  send(ServerFrame::kPush, header, scratch, network::Kept::kCopy);
}

void ShardClient::State::send_replay(const ReplayWindow::Entry& entry) {
  network::FrameHeader header;
  header.sequence = entry.sequence;
  header.detail = low_bits(entry.base);
  if (entry.refused || options.spec.mode == ServerMode::kSync) {
    send(ServerFrame::kCommitted, header, encode_workers(entry.workers, options.spec.workers));
  }
  if (entry.refused) return;
  const std::span<const float> all = entry.gradients;
  const std::size_t at_most = ports.piece_bytes() / bytes_each(options.spec.wire);
  std::size_t place = 0;
  do {
    const auto part = all.subspan(place, std::min(at_most, all.size() - place));
    header.place = place;
    send_part(header, part,
              network::Kept::kCopy);  // a snapshot may end the entry before it is sent
    place += part.size();
  } while (place < all.size());
}

void ShardClient::State::pump() {
  if (!member.joined()) return;
  if (initial.given && !initial_sent && !body.initialized) send_initial();
  if (!pump_replay()) return;
  // Ahead of the push, unless the server has that already: it would answer the pull first; or is
  // still to be sent others, which must not be overtaken.
  const bool ahead = push_open() && pull.which == 0 && push.sequence == heard_of + 1;
  if (ahead && ports.both_ways()) ask_for_values(true);
  if (!pump_push()) return;
  ask_for_values(false);
  if (!push_open() && !pull.wanted) member.send_leave();
}

void ShardClient::State::ask_for_values(bool ahead) {
  if (!pull.wanted || pull.asked) return;
  pull.asked = true;
  pull.arrived = pull.early = 0;
  network::FrameHeader header;
  header.sequence = ++pull.id;
  header.place = push_open() ? push.sequence : answered;
  header.detail = pull.which;
  if (!ahead) return send(ServerFrame::kPull, header);
  header.type = static_cast<network::FrameType>(ServerFrame::kPull);
  header.incarnation = member.incarnation();
  ports.send_ahead(header);
}

bool ShardClient::State::pump_replay() {
  while (!repeat) {
    const ReplayWindow::Entry* entry = window.after(replayed);
    if (entry == nullptr) return true;
    replayed = entry->sequence;
    send_replay(*entry);
    // Rounds depend on one another, so the next one is repeated when this one is made.
    if (options.spec.mode == ServerMode::kSync && !entry->refused) repeat = entry->sequence;
  }
  return false;
}

bool ShardClient::State::pump_push() {
  if (!push_open() || push.whole) return true;
  if (body.keeps_state && window.bytes() > 0 &&
      window.bytes() + push.gradients.size_bytes() > options.window_bytes) {
    ask_for_snapshot();
    return false;
  }
  const std::int64_t size = options.spec.size;
  const std::int64_t at_most =
      static_cast<std::int64_t>(ports.piece_bytes() / bytes_each(options.spec.wire));
  network::FrameHeader header;
  header.sequence = push.sequence;
  header.detail = low_bits(push.base);
  const std::int64_t at_least = std::max<std::int64_t>(1, options.min_part);
  while (push.final - push.sent >= at_least || push.final == size) {
    header.place = static_cast<std::uint64_t>(push.sent);
    const auto part =
        push.gradients.at(static_cast<std::size_t>(push.sent),
                          static_cast<std::size_t>(std::min(at_most, push.final - push.sent)));
    push.sent += static_cast<std::int64_t>(part.size());
    push.whole = push.sent == size;
    send_part(header, part, network::Kept::kLent);
    if (push.whole) return true;
  }
  return false;
}

void ShardClient::State::ask_for_snapshot() {
  if (snapshot_asked) return;
  snapshot_asked = true;
  send(ServerFrame::kPersist);
}

ShardClient::ShardClient(const ClientOptions& options, ClientPorts& ports)
    : state_(std::make_unique<State>(options, ports)) {}
ShardClient::~ShardClient() = default;

void ShardClient::initialize(const ArenaView<const float>& parameters,
                             std::span<const ArenaView<const float>> slots,
                             const ModelProgress& behind) {
  const auto size = static_cast<std::size_t>(state_->options.spec.size);
  COHORT_CHECK(parameters.size() == size, "initial values of the arena's size");
  for (const auto& slot : slots) COHORT_CHECK(slot.size() == size, "slots of the arena's size");
  state_->initial = {.parameters = parameters,
                     .slots = {slots.begin(), slots.end()},
                     .behind = behind,
                     .given = true};
  state_->pump();
}

void ShardClient::go_back() {
  State& state = *state_;
  COHORT_CHECK(state.options.worker == 0 && state.sequence == 0, "worker 0 that has not begun");
  state.going_back = true;
  state.member.start_over();
  state.body = {};
  state.send_join();
}

void ShardClient::begin_push(const ArenaView<const float>& gradients) {
  State& state = *state_;
  COHORT_CHECK(gradients.size() == static_cast<std::size_t>(state.options.spec.size),
               "gradients of the arena's size");
  COHORT_CHECK(!state.push_open(), "the push before has been answered");
  state.outcome.reset();
  state.sequence = state.answered + 1;  // also that of a push that was taken back
  state.push = {.gradients = gradients,
                .sequence = state.sequence,
                .base = state.version,
                .final = 0,
                .sent = 0,
                .whole = false,
                .withdrawn = false};
}

void ShardClient::extend_push(std::int64_t count) {
  State& state = *state_;
  COHORT_CHECK(count >= state.push.final && count <= state.options.spec.size,
               "a push grows to the arena's size");
  state.push.final = count;
  state.pump();
}

const std::optional<PushOutcome>& ShardClient::push_outcome() const { return state_->outcome; }

void ShardClient::take_back(const ArenaView<float>& into) {
  if (state_->unanswered()) state_->push.withdrawn = true;
  pull(into, kExactParameters);
}

bool ShardClient::push_made() const {
  const State& state = *state_;
  const bool rounds = state.options.spec.mode == ServerMode::kSync;
  return !state.unanswered() || (rounds && state.version > state.push.base);
}

void ShardClient::pull(const ArenaView<float>& into, std::uint32_t which) {
  COHORT_CHECK(into.size() == static_cast<std::size_t>(state_->options.spec.size),
               "a place of the arena's size");
  const std::uint64_t id = state_->pull.id;
  state_->pull = {.into = into,
                  .which = which,
                  .id = id,
                  .arrived = 0,
                  .early = 0,
                  .version = 0,
                  .wanted = true,
                  .asked = false};
  state_->pump();
}

void ShardClient::leave(membership::LeaveKind how) {
  state_->member.leave(how);
  state_->pump();
}

bool ShardClient::needs_values() const {
  return state_->member.joined() && !state_->body.initialized && !state_->initial.given;
}
const JoinedBody& ShardClient::joined_body() const { return state_->body; }
const membership::MembershipClient& ShardClient::membership() const { return state_->member; }
bool ShardClient::pulled() const { return !state_->pull.wanted; }
std::uint64_t ShardClient::version() const { return state_->version; }
bool ShardClient::finished() const { return state_->finished; }
const ModelProgress& ShardClient::progress() const { return state_->progress; }
std::size_t ShardClient::window() const { return state_->window.bytes(); }

std::string ShardClient::waits_for() const {
  const State& state = *state_;
  const std::string server = "server " + std::to_string(state.options.spec.server);
  const membership::MembershipClient& member = state.member;
  if (member.refused()) return "nothing: " + *member.refused();
  if (!member.connected()) return "a connection to " + server;
  if (!member.joined() && state.options.join == membership::JoinKind::kCheckpoint &&
      member.lineage() == 0 && state.options.worker != 0) {
    return "being let in by " + server + ", or worker 0 with its checkpoint";
  }
  if (!member.joined()) return "being let in by " + server;
  if (state.repeat) return server + " to take again what it had before its restart";
  if (state.push_open() && state.push.final < state.options.spec.size) return "its own gradients";
  if (state.push_open() && !state.push.whole) return server + " to write its state to disk";
  if (state.push_open() && state.options.spec.mode == ServerMode::kSync) {
    return "the others in round " + std::to_string(state.push.base + 1);
  }
  if (state.push_open()) return server + " to take its gradients";
  if (state.pull.wanted && !state.body.initialized && state.options.worker != 0 &&
      state.version == 0) {
    return "the initial values of worker 0";
  }
  if (state.pull.wanted && state.options.spec.mode == ServerMode::kBounded) {
    return "the slowest worker, or the values of " + server;
  }
  if (state.pull.wanted) return "the values of " + server;
  if (member.leaving() && !member.left()) return "the farewell of " + server;
  return "nothing";
}

}  // namespace cohort::server
