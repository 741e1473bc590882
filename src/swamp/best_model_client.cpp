#include "swamp/best_model_client.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"

namespace cohort::swamp {
struct BestModelClient::State {
  struct Offer {
    ModelValues values = {};
    double claim = 0;
    bool sent = false;  // on this connection, or the server has it
  };

  struct Pull {
    PullKind kind = PullKind::kPolicy;
    std::uint64_t has_version = 0;
    std::uint64_t id = 0;
    bool wanted = false;
    bool asked = false;  // on this connection
    std::optional<PulledModel> coming = {};
    std::size_t arrived = 0;
  };

  State(Rank given_worker, const SwampSpec& given, SwampClientPorts& given_ports)
      : worker(given_worker),
        spec(given),
        size(static_cast<std::size_t>(given.values)),
        ports(given_ports),
        member(membership::Conversation::kBestModel, "the best-model server", to_json(given).dump(),
               [this](const network::FrameHeader& header, std::span<const std::byte> payload) {
                 ports.send(header, payload, nullptr);
               }) {}

  void send(SwampFrame type, network::FrameHeader header = {},
            std::span<const std::byte> payload = {}, const ModelValues& owner = {}) {
    header.type = static_cast<network::FrameType>(type);
    header.length = static_cast<std::uint32_t>(payload.size());
    header.incarnation = member.incarnation();
    ports.send(header, payload, owner);
  }

  void send_values(SwampFrame type, std::uint64_t number, const ModelValues& model) {
    const std::span<const float> all(*model);
    for (std::size_t at = 0; at < all.size(); at += kSwampPieceValues) {
      network::FrameHeader header;
      header.sequence = number;
      header.place = at;
      const auto piece = all.subspan(at, std::min(kSwampPieceValues, all.size() - at));
      send(type, header, std::as_bytes(piece), model);
    }
  }

  // Sends what is next and possible.
  void pump() {
    if (!member.joined()) return;
    if (initial && !server_initialized && !initial_sent) {
      initial_sent = true;
      send_values(SwampFrame::kInitial, 0, initial);
    }
    bool all_sent = true;
    OfferBody body;
    for (auto& [number, offer] : offers) {
      if (!offer.sent) {
        all_sent = body.open.size() < kOfferWindow;
        if (!all_sent) break;
        offer.sent = true;
        network::FrameHeader header;
        header.sequence = number;
        body.claim = offer.claim;
        send(SwampFrame::kOffer, header, encode(body));
        send_values(SwampFrame::kOfferValues, number, offer.values);
      }
      body.open.push_back(number);
    }
    // What is the last word must be behind all offers.
    if (pull.wanted && !pull.asked && (all_sent || pull.kind == PullKind::kPolicy)) ask();
    if (all_sent) member.send_leave();
  }

  void ask() {
    pull.asked = true;
    pull.id = ++last_pull;
    pull.coming.reset();
    pull.arrived = 0;
    network::FrameHeader header;
    header.sequence = pull.id;
    header.place = pull.has_version;
    header.detail = static_cast<std::uint32_t>(pull.kind);
    send(SwampFrame::kPull, header);
  }

  void on_joined(std::span<const std::byte> payload) {
    const JoinedSwamp told = decode_joined_swamp(membership::joined_rest(payload));
    server_initialized = told.initialized;
    for (const std::uint64_t number : told.known) {
      const auto found = offers.find(number);
      if (found != offers.end()) found->second.sent = true;
    }
    pump();
  }

  // Another process has this place, or the server has forgotten this one: it comes as a new one,
  // and brings what was not judged.
  void on_fenced() {
    forget_connection();
    member.ask();
  }

  void forget_connection() {
    initial_sent = false;
    for (auto& [number, offer] : offers) offer.sent = false;
    pull.asked = false;
    pull.coming.reset();
  }

  void on_verdict(const network::FrameHeader& header, std::span<const std::byte> payload) {
    OfferVerdict verdict = decode_verdict(header, payload);
    if (verdict.sequence == 0 || verdict.sequence > sequence) {
      broken("judged an offer that was not made");
    }
    if (offers.erase(verdict.sequence) == 0) return;  // told again
    verdicts.push_back(std::move(verdict));
    pump();
  }

  bool answers_pull(const network::FrameHeader& header) const {
    if (header.sequence > last_pull) broken("answered a pull that was not made");
    return pull.wanted && pull.asked && header.sequence == pull.id;
  }

  void on_nothing(const network::FrameHeader& header) {
    if (!answers_pull(header)) return;
    if (pull.coming || pull.kind == PullKind::kStart) broken("took back a model that was coming");
    pull.wanted = false;
    answer.reset();
  }

  void on_model(const network::FrameHeader& header, std::span<const std::byte> payload) {
    if (!answers_pull(header)) return;
    if (pull.coming) broken("answered a pull twice");
    pull.coming = PulledModel{.version = header.place, .score = decode_number(payload)};
    pull.arrived = 0;
    values.resize(size);
  }

  bool follows(const network::FrameHeader& header, std::size_t bytes) const {
    return pull.coming && bytes > 0 && bytes % sizeof(float) == 0 && header.place == pull.arrived &&
           bytes / sizeof(float) <= size - pull.arrived;
  }

  void on_values(const network::FrameHeader& header, std::span<const std::byte> payload) {
    if (!answers_pull(header)) return;
    if (!follows(header, payload.size())) broken("sent values that do not follow on those before");
    float* place = values.data() + pull.arrived;
    if (static_cast<const void*>(place) != payload.data()) {
      std::memcpy(place, payload.data(), payload.size());
    }
    pull.arrived += payload.size() / sizeof(float);
    if (pull.arrived < size) return;
    pull.wanted = false;
    answer = pull.coming;
    if (pull.kind == PullKind::kStart) initial.reset();
  }

  [[noreturn]] void broken(const std::string& what) const { member.broken(what); }

  const Rank worker;
  const SwampSpec spec;
  const std::size_t size;
  SwampClientPorts& ports;

  membership::MembershipClient member;
  bool server_initialized = false;

  ModelValues initial;
  bool initial_sent = false;  // on this connection

  std::uint64_t sequence = 0;             // of the last offer; counts on over incarnations
  std::map<std::uint64_t, Offer> offers;  // that are not judged
  std::vector<OfferVerdict> verdicts;

  Pull pull;
  std::uint64_t last_pull = 0;
  std::optional<PulledModel> answer;
  // Given out to receive into: from the first model on of its size, and never moved.
  std::vector<float> values;
};

BestModelClient::BestModelClient(Rank worker, const SwampSpec& spec, SwampClientPorts& ports)
    : state_(std::make_unique<State>(worker, spec, ports)) {}
BestModelClient::~BestModelClient() = default;

void BestModelClient::on_connected(Deadline) {
  State& state = *state_;
  state.member.on_connected();
  state.forget_connection();
  state.member.ask();
}

void BestModelClient::on_lost(Deadline) {
  state_->member.on_lost();
  state_->forget_connection();
}

std::optional<std::span<std::byte>> BestModelClient::place_for(const network::FrameHeader& header) {
  State& state = *state_;
  const bool expected = header.type == static_cast<network::FrameType>(SwampFrame::kValues) &&
                        state.member.joined() && header.incarnation == state.member.incarnation() &&
                        state.pull.wanted && state.pull.asked && header.sequence == state.pull.id &&
                        state.follows(header, header.length);
  if (!expected) return {};
  return std::as_writable_bytes(
      std::span(state.values).subspan(state.pull.arrived, header.length / sizeof(float)));
}

void BestModelClient::on_frame(const network::FrameHeader& header,
                               std::span<const std::byte> payload, Deadline) {
  State& state = *state_;
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
  switch (static_cast<SwampFrame>(header.type)) {
    case SwampFrame::kVerdict:
      return state.on_verdict(header, payload);
    case SwampFrame::kNothing:
      return state.on_nothing(header);
    case SwampFrame::kModel:
      return state.on_model(header, payload);
    case SwampFrame::kValues:
      return state.on_values(header, payload);
    default:
      state.broken("sent a frame of the unknown type " + std::to_string(header.type));
  }
}

const membership::MembershipClient& BestModelClient::membership() const { return state_->member; }

void BestModelClient::initialize(ModelValues values) {
  COHORT_CHECK(values->size() == state_->size, "initial values of the right size");
  state_->initial = std::move(values);
  state_->pump();
}

std::uint64_t BestModelClient::offer(ModelValues values, double claim) {
  State& state = *state_;
  COHORT_CHECK(values->size() == state.size, "a model of the right size");
  COHORT_CHECK(!state.member.leaving(), "offers come before the farewell");
  state.offers[++state.sequence] = {.values = std::move(values), .claim = claim, .sent = false};
  state.pump();
  return state.sequence;
}

std::size_t BestModelClient::unsent() const {
  return static_cast<std::size_t>(
      std::count_if(state_->offers.begin(), state_->offers.end(),
                    [](const auto& each) { return !each.second.sent; }));
}

std::vector<OfferVerdict> BestModelClient::take_verdicts() {
  return std::exchange(state_->verdicts, {});
}

void BestModelClient::pull(PullKind kind, std::uint64_t has_version) {
  state_->pull = {.kind = kind,
                  .has_version = has_version,
                  .id = 0,
                  .wanted = true,
                  .asked = false,
                  .coming = {},
                  .arrived = 0};
  state_->answer.reset();
  state_->pump();
}

void BestModelClient::cancel_pull() { state_->pull = {}; }
bool BestModelClient::pulled() const { return !state_->pull.wanted; }
const std::optional<PulledModel>& BestModelClient::answer() const { return state_->answer; }
std::span<const float> BestModelClient::values() const { return state_->values; }

void BestModelClient::leave() {
  state_->member.leave(membership::LeaveKind::kDone);
  state_->pump();
}

bool BestModelClient::left() const { return state_->member.left() && state_->offers.empty(); }

std::string BestModelClient::waits_for() const {
  const State& state = *state_;
  const membership::MembershipClient& member = state.member;
  if (member.refused()) return "nothing: " + *member.refused();
  if (!member.connected()) return "a connection";
  if (!member.joined()) return "being let in";
  if (state.pull.wanted && state.pull.kind == PullKind::kStart) {
    if (state.worker != 0 && !state.server_initialized) return "the initial values of worker 0";
    return "the values to start with";
  }
  if (state.pull.wanted && state.pull.kind == PullKind::kFinal) {
    return "the other workers, and the last verdicts";
  }
  if (state.pull.wanted) return "a model";
  if (unsent() > 0) return "verdicts about earlier models";
  if (member.leaving() && !state.offers.empty()) {
    return "verdicts about " + std::to_string(state.offers.size()) + " models";
  }
  if (member.leaving() && !member.left()) return "the farewell";
  return "nothing";
}

}  // namespace cohort::swamp
