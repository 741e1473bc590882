// A conversation with a parameter server: the bytes say who connects, what frames come over which
// connection, how time passes, how writing to disk ends, and when the server is started anew.
// Whatever they say, the server throws nothing but PeerError, keeps to its ports' contracts, and
// holds no more than a model of the size that was agreed on.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "input.h"
#include "server/messages.h"
#include "server/parameter_server.h"

namespace cohort {
namespace {

constexpr std::int64_t kSize = 24;
constexpr int kWorkers = 3;

server::JobSpec make_spec(std::uint8_t choice) {
  server::JobSpec spec;
  spec.workers = kWorkers;
  spec.size = kSize;
  spec.mode = static_cast<server::ServerMode>(choice % 3);
  if (spec.mode == server::ServerMode::kBounded) spec.staleness = choice >> 5;
  if (spec.mode == server::ServerMode::kSync) spec.backup_workers = (choice >> 5) % kWorkers;
  if (spec.mode == server::ServerMode::kSync && (choice & 8) != 0) spec.total_updates = 3;
  if (spec.mode != server::ServerMode::kSync && (choice & 8) != 0) spec.delay_compensation = 0.5;
  if ((choice & 16) != 0) spec.wire = server::WireFormat::kBfloat16;
  spec.optimizer_options.momentum = 0.5;
  spec.decay = {{{0, 8}, 0.25}, {{8, kSize - 8}, 0}};
  return spec;
}

class Harness final : public server::ServerPorts {
 public:
  explicit Harness(std::uint8_t choice)
      : choice_(choice), spec_(make_spec(choice)), spec_text_(server::to_json(spec_).dump()) {
    start();
  }

  void step(Input& input) {
    const std::uint8_t what = input.byte();
    sent_ = 0;
    switch (what % 8) {
      case 0:
        return connect(input.byte() % (kWorkers + 1));
      case 5:
        return tick(input.byte());
      case 6:
        return lose(input.byte());
      case 7:
        return disk(input.byte());
      default:
        return frame(input);
    }
  }

  void send(membership::ConnectionId to, const network::FrameHeader& header,
            std::span<const std::byte> payload, network::Kept) override {
    COHORT_CHECK(open_.count(to) == 1, "a frame to a connection that is no more");
    COHORT_CHECK(payload.size() <= network::kMaxPayload, "a payload over the bound");
    COHORT_CHECK(++sent_ <= 200, "an answer without end");
    // Every byte is read, for the sanitizer.
    std::uint8_t all = 0;
    for (const std::byte each : payload) all |= static_cast<std::uint8_t>(each);
    sink_ = all;
    if (header.type != static_cast<network::FrameType>(membership::MemberFrame::kJoined)) return;
    incarnations_[to] = header.incarnation;
    lineage_ = membership::joined_lineage(payload);
  }
  std::size_t piece_bytes(membership::ConnectionId) const override { return 2 * sizeof(float); }
  bool has_room(membership::ConnectionId) override { return ++asked_ % 3 != 0; }
  void model_changes(std::span<const std::byte>) override {}
  void close(membership::ConnectionId connection, const std::string&) override {
    open_.erase(connection);
  }
  void persist(server::ServerSnapshot snapshot) override {
    COHORT_CHECK((choice_ & 4) != 0, "a snapshot that nobody wants");
    COHORT_CHECK(snapshot.parameters.size() <= kSize && snapshot.state.size() < 65536,
                 "a snapshot of another size");
    writing_ = std::move(snapshot);
  }

 private:
  Deadline now() const { return Deadline{} + std::chrono::hours(1) + since_; }

  void start() {
    server::ServerOptions options;
    options.keeps_state = (choice_ & 4) != 0;
    options.snapshot_every = std::chrono::milliseconds(500);
    options.idle_exit = std::chrono::seconds(60);
    server_ = std::make_unique<server::ParameterServer>(options, *this, kept_ ? &*kept_ : nullptr);
  }

  void connect(Rank worker) {
    if (open_.size() >= 8) return;
    open_.insert(++last_);
    guarded(last_, [&] { server_->on_connected(last_, worker, now()); });
  }

  void tick(std::uint8_t amount) {
    since_ += std::chrono::milliseconds(1 + amount * (amount % 2 == 0 ? 1 : 20));
    for (const membership::ConnectionId each : std::set<membership::ConnectionId>(open_)) {
      if (amount % 4 == 0 && open_.count(each) == 1) server_->on_heard(each, now());
      if (open_.count(each) == 1) server_->on_room(each, now());
    }
    server_->on_tick(now());
    sink_ = server_->finished().has_value() ? 1 : 0;
    COHORT_CHECK(server_->text().size() < 4096, "a text without end");
    for (const float each : server_->parameters()) {
      COHORT_CHECK(std::isfinite(each), "the model holds what is no number");
    }
  }

  void lose(std::uint8_t which) {
    const auto connection = pick(which);
    if (!connection) return;
    open_.erase(*connection);
    server_->on_lost(*connection, now());
  }

  void disk(std::uint8_t what) {
    if (what % 4 == 3) {  // the server dies; what was being written is whole
      if (what % 8 == 7 && writing_) kept_ = std::move(writing_);
      writing_.reset();
      open_.clear();
      if (kept_ || (choice_ & 4) != 0) start();
      return;
    }
    if (!writing_) return;
    const std::uint64_t id = writing_->id;
    if (what % 4 == 2) {
      writing_.reset();
      server_->on_persist_failed(id, "no space", now());
    } else {
      kept_ = std::move(writing_);
      writing_.reset();
      server_->on_persisted(id, now());
    }
  }

  std::optional<membership::ConnectionId> pick(std::uint8_t which) const {
    if (open_.empty()) return {};
    return *std::next(open_.begin(), which % static_cast<int>(open_.size()));
  }

  void frame(Input& input) {
    const auto connection = pick(input.byte());
    network::FrameHeader header;
    // Mostly what a worker may say; now and then anything.
    const std::uint8_t type = input.byte();
    constexpr network::FrameType kTypes[] = {
        static_cast<network::FrameType>(membership::MemberFrame::kJoin),
        static_cast<network::FrameType>(server::ServerFrame::kInitialize),
        static_cast<network::FrameType>(server::ServerFrame::kInitialized),
        static_cast<network::FrameType>(server::ServerFrame::kCommitted),
        static_cast<network::FrameType>(server::ServerFrame::kPush),
        static_cast<network::FrameType>(server::ServerFrame::kPull),
        static_cast<network::FrameType>(server::ServerFrame::kPersist),
        static_cast<network::FrameType>(membership::MemberFrame::kLeave)};
    header.type = type < 192 ? kTypes[type % std::size(kTypes)] : type;
    const std::uint8_t fields = input.byte();
    if ((fields & 1) != 0 && connection) header.incarnation = incarnations_[*connection];
    if ((fields & 2) != 0) header.incarnation = input.word();
    header.sequence = (fields & 4) != 0 ? input.word() : input.byte();
    header.place = (fields & 8) != 0 ? input.word() : input.byte() % (kSize + 2);
    header.detail =
        (fields & 16) != 0 ? static_cast<std::uint32_t>(input.word()) : input.byte() % 8;
    const Bytes payload = make_payload(input, fields >> 5);
    if (!connection) return;
    header.length = static_cast<std::uint32_t>(payload.size());
    guarded(*connection, [&] {
      const auto place = server_->place_for(*connection, header);
      if (open_.count(*connection) == 0) return;
      if (place) {
        COHORT_CHECK(place->size() == payload.size(), "a place of another size");
        std::copy(payload.begin(), payload.end(), place->begin());
      }
      server_->on_frame(*connection, header, place ? std::span<const std::byte>(*place) : payload,
                        now());
    });
  }

  Bytes make_payload(Input& input, int kind) {
    const std::size_t each = server::bytes_each(spec_.wire);
    switch (kind) {
      case 0:
        return {};
      case 1:
        return input.bytes(input.byte());
      case 2: {  // a whole gradient, or parameters
        Bytes bytes(static_cast<std::size_t>(kSize) * each);
        const std::uint8_t value = input.byte();
        for (std::size_t i = each - 1; i < bytes.size(); i += each) {
          bytes[i] = static_cast<std::byte>(value % 64);  // finite, and below 2
        }
        return bytes;
      }
      case 3:
        return Bytes((input.byte() % (kSize + 1)) * each);
      case 4:
        return Bytes((input.byte() % (kSize + 1)) * sizeof(float));
      case 5:
        return Bytes(static_cast<std::size_t>(kSize) * sizeof(float));
      case 6:
        return join_body(0, spec_text_);
      default:
        return join_body(lineage_, spec_text_);
    }
  }

  static Bytes join_body(std::uint64_t lineage, const std::string& text) {
    return membership::encode(membership::JoinRequest{.lineage = lineage, .job = text});
  }

  template <class Call>
  void guarded(membership::ConnectionId connection, const Call& call) {
    try {
      call();
    } catch (const PeerError&) {
      if (open_.erase(connection) == 1) server_->on_lost(connection, now());
    }
  }

  std::uint8_t choice_;
  server::JobSpec spec_;
  std::string spec_text_;
  std::unique_ptr<server::ParameterServer> server_;
  std::set<membership::ConnectionId> open_;
  membership::ConnectionId last_ = 0;
  std::chrono::nanoseconds since_ = {};
  std::map<membership::ConnectionId, std::uint64_t> incarnations_;
  std::uint64_t lineage_ = 0;
  std::optional<server::ServerSnapshot> writing_;
  std::optional<server::ServerSnapshot> kept_;
  int sent_ = 0;
  int asked_ = 0;  // for room
  volatile std::uint8_t sink_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  Input input(data, size);
  if (size > 0 && data[0] == 255) {  // a specification, as text
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
      const server::JobSpec spec = server::job_spec_from(text);
      COHORT_CHECK(
          server::differences(server::job_spec_from(server::to_json(spec).dump()), spec).empty(),
          "a specification changed by writing and reading it");
    } catch (const PeerError&) {
    }
    return 0;
  }
  Harness harness(input.byte());
  while (!input.empty()) harness.step(input);
  return 0;
}

}  // namespace cohort
