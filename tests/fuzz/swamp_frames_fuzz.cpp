// A conversation with a best-model server: the bytes say who connects, what frames come over which
// connection, how time passes, what the examiner finds, how writing to disk ends, and when the
// server is started anew. Whatever they say, the server throws nothing but PeerError, keeps to its
// ports' contracts, and what it calls the best is finite.
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
#include "swamp/best_model_server.h"

namespace cohort {
namespace {

constexpr std::int64_t kSize = 12;
constexpr int kWorkers = 3;

swamp::SwampSpec make_spec(std::uint8_t choice) {
  const char* policies[] = {"validated", "fifo", "latest"};
  swamp::SwampSpec spec;
  spec.workers = kWorkers;
  spec.values = kSize;
  spec.policy = policies[choice % 3];
  spec.hysteresis = (choice & 8) != 0 ? 0.5 : 0;
  return spec;
}

class Harness final : public swamp::SwampServerPorts {
 public:
  explicit Harness(std::uint8_t choice)
      : choice_(choice), spec_(make_spec(choice)), spec_text_(swamp::to_json(spec_).dump()) {
    start();
  }

  void step(Input& input) {
    const std::uint8_t what = input.byte();
    sent_ = 0;
    switch (what % 8) {
      case 0:
        return connect(input.byte() % (kWorkers + 1));
      case 4:
        return examined(input);
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
            std::span<const std::byte> payload, const swamp::ModelValues& owner) override {
    COHORT_CHECK(open_.count(to) == 1, "a frame to a connection that is no more");
    COHORT_CHECK(payload.size() <= network::kMaxPayload, "a payload over the bound");
    COHORT_CHECK(++sent_ <= 200, "an answer without end");
    // Every byte is read, for the sanitizer.
    std::uint8_t all = 0;
    for (const std::byte each : payload) all |= static_cast<std::uint8_t>(each);
    sink_ = all;
    if (owner) check_finite(*owner);
    if (header.type != static_cast<network::FrameType>(membership::MemberFrame::kJoined)) return;
    swamp::decode_joined_swamp(membership::joined_rest(payload));
    incarnations_[to] = header.incarnation;
    lineage_ = membership::joined_lineage(payload);
  }
  void close(membership::ConnectionId connection, const std::string&) override {
    open_.erase(connection);
  }
  void examine(std::uint64_t ticket, const swamp::ModelValues& model, std::uint64_t) override {
    COHORT_CHECK(!examining_, "two examinations at a time");
    check_finite(*model);
    examining_ = ticket;
  }
  void persist(swamp::SwampSnapshot snapshot) override {
    COHORT_CHECK((choice_ & 4) != 0, "a snapshot that nobody wants");
    COHORT_CHECK(!writing_, "two snapshots at a time");
    COHORT_CHECK(snapshot.state.size() < 65536, "a snapshot of another size");
    writing_ = std::move(snapshot);
  }
  void accepted(const swamp::BestRecord& best) override {
    COHORT_CHECK(best.version == version_ + 1, "versions grow by one");
    version_ = best.version;
    check_finite(*best.model);
    COHORT_CHECK(std::isfinite(best.loss), "the best model has a loss");
  }

 private:
  Deadline now() const { return Deadline{} + std::chrono::hours(1) + since_; }

  static void check_finite(const std::vector<float>& values) {
    COHORT_CHECK(values.size() == kSize, "a model of another size");
    for (const float each : values) COHORT_CHECK(std::isfinite(each), "a model that is none");
  }

  void start() {
    swamp::SwampServerSettings settings;
    settings.keeps_state = (choice_ & 4) != 0;
    settings.idle_exit = std::chrono::seconds(60);
    settings.persist_tries = 2;
    settings.policy.queue = 2;
    settings.policy.replay = 5;
    settings.policy.replay_models = 2;
    settings.seed = ++lives_;
    server_ = std::make_unique<swamp::BestModelServer>(settings, *this, kept_ ? &*kept_ : nullptr);
    version_ = server_->best().version;
  }

  void connect(Rank worker) {
    if (open_.size() >= 8) return;
    open_.insert(++last_);
    guarded(last_, [&] { server_->on_connected(last_, worker, now()); });
  }

  void examined(Input& input) {
    if (!examining_) return;
    const std::uint64_t ticket = *examining_;
    const std::uint8_t how = input.byte();
    examining_.reset();
    if (how % 8 == 0) return server_->on_not_examined(ticket, "no memory", now());
    std::vector<float> losses(how % 8 == 1 ? how / 8 : 4);
    for (float& loss : losses) loss = static_cast<float>(input.byte()) / 16;
    if (how % 8 == 2) losses[0] = NAN;
    server_->on_examined(ticket + (how % 8 == 3 ? 1 : 0), losses, now());
    if (how % 8 == 3) examining_ = ticket;
  }

  void tick(std::uint8_t amount) {
    since_ += std::chrono::milliseconds(1 + amount * (amount % 2 == 0 ? 1 : 20));
    for (const membership::ConnectionId each : std::set<membership::ConnectionId>(open_)) {
      if (amount % 4 == 0 && open_.count(each) == 1) server_->on_heard(each, now());
    }
    server_->on_tick(now());
    sink_ = server_->finished().has_value() ? 1 : 0;
    COHORT_CHECK(server_->text().size() < 4096, "a text without end");
  }

  void lose(std::uint8_t which) {
    const auto connection = pick(which);
    if (!connection) return;
    open_.erase(*connection);
    server_->on_lost(*connection, now());
  }

  void disk(std::uint8_t what) {
    if (what % 4 == 3) {  // the server dies; what was being written is whole, or not there
      if (what % 8 == 7 && writing_) kept_ = std::move(writing_);
      writing_.reset();
      examining_.reset();
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
        static_cast<network::FrameType>(swamp::SwampFrame::kInitial),
        static_cast<network::FrameType>(swamp::SwampFrame::kOffer),
        static_cast<network::FrameType>(swamp::SwampFrame::kOfferValues),
        static_cast<network::FrameType>(swamp::SwampFrame::kPull),
        static_cast<network::FrameType>(membership::MemberFrame::kLeave)};
    header.type = type < 192 ? kTypes[type % std::size(kTypes)] : type;
    const std::uint8_t fields = input.byte();
    if ((fields & 1) != 0 && connection) header.incarnation = incarnations_[*connection];
    if ((fields & 2) != 0) header.incarnation = input.word();
    header.sequence = (fields & 4) != 0 ? input.word() : input.byte();
    header.place = (fields & 8) != 0 ? input.word() : input.byte() % (kSize + 2);
    header.detail =
        (fields & 16) != 0 ? static_cast<std::uint32_t>(input.word()) : input.byte() % 4;
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
    switch (kind) {
      case 0:
        return {};
      case 1:
        return input.bytes(input.byte());
      case 2: {  // a whole model
        Bytes bytes(static_cast<std::size_t>(kSize) * sizeof(float));
        const std::uint8_t value = input.byte();
        for (std::size_t i = 3; i < bytes.size(); i += 4) bytes[i] = static_cast<std::byte>(value);
        return bytes;
      }
      case 3:
        return Bytes((input.byte() % (kSize + 1)) * sizeof(float));
      case 4:
      case 5: {
        swamp::OfferBody body{.claim = static_cast<double>(input.byte()) / 8, .open = {}};
        for (std::uint8_t count = input.byte() % 9; kind == 5 && count > 0; --count) {
          body.open.push_back(input.byte());
        }
        return swamp::encode(body);
      }
      case 6:
        return join_body(0);
      default:
        return join_body(lineage_);
    }
  }

  Bytes join_body(std::uint64_t lineage) const {
    return membership::encode(
        membership::JoinRequest{.conversation = membership::Conversation::kBestModel,
                                .lineage = lineage,
                                .job = spec_text_});
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
  swamp::SwampSpec spec_;
  std::string spec_text_;
  std::unique_ptr<swamp::BestModelServer> server_;
  Seed lives_ = 0;
  std::uint64_t version_ = 0;
  std::set<membership::ConnectionId> open_;
  membership::ConnectionId last_ = 0;
  std::chrono::nanoseconds since_ = {};
  std::map<membership::ConnectionId, std::uint64_t> incarnations_;
  std::uint64_t lineage_ = 0;
  std::optional<std::uint64_t> examining_;
  std::optional<swamp::SwampSnapshot> writing_;
  std::optional<swamp::SwampSnapshot> kept_;
  int sent_ = 0;
  volatile std::uint8_t sink_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  Input input(data, size);
  if (size > 0 && data[0] == 255) {  // a specification, as text
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
      const swamp::SwampSpec spec = swamp::swamp_spec_from(text);
      COHORT_CHECK(
          swamp::differences(swamp::swamp_spec_from(swamp::to_json(spec).dump()), spec).empty(),
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
