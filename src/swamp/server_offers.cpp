#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "swamp/candidate.h"
#include "swamp/server_state.h"

namespace cohort::swamp {
namespace {

[[noreturn]] void broken(Rank worker, const std::string& what) {
  throw PeerError("worker " + std::to_string(worker) + " " + what);
}

}  // namespace

void BestModelServer::State::on_offer(Member& member, const network::FrameHeader& header,
                                      std::span<const std::byte> payload) {
  const std::uint64_t sequence = header.sequence;
  if (!initialized) broken(member.worker, "offered a model before there were initial values");
  if (member.leaving) broken(member.worker, "offered a model after it had left");
  if (member.incoming.sequence != 0) broken(member.worker, "began an offer amid another");
  const OfferBody body = decode_offer(payload, sequence);
  const auto is_open = [&](std::uint64_t number) {
    return number == sequence || std::binary_search(body.open.begin(), body.open.end(), number);
  };
  if (!std::all_of(member.held.begin(), member.held.end(), is_open)) {
    broken(member.worker, "has forgotten an offer that is not judged");
  }
  // Offers arrive in order: what is neither known nor new was judged, and its worker has heard it.
  const bool known = member.knows(sequence);
  if (!known && sequence <= member.newest) broken(member.worker, "offered a judged model again");
  std::erase_if(member.verdicts, [&](const auto& each) { return !is_open(each.first); });
  member.ended = false;
  // It had left before a crash that has lost the verdicts it had not heard.
  member.presence = Presence::kPresent;
  member.incoming = {.sequence = sequence, .claim = body.claim, .arrived = 0, .values = {}};
  if (!known) {
    member.incoming.values =
        std::make_shared<std::vector<float>>(static_cast<std::size_t>(spec->values));
    return;
  }
  ++counters.duplicates;
  const auto judged = member.verdicts.find(sequence);
  if (judged != member.verdicts.end()) send_verdict(member, judged->second);
}

// Whether the frame's values are the next ones of the offer that is coming in.
bool BestModelServer::State::follows(const Member& member, const network::FrameHeader& header,
                                     std::size_t bytes) const {
  const SwampMember::Incoming& incoming = member.incoming;
  if (incoming.sequence == 0 || header.sequence != incoming.sequence) return false;
  if (bytes == 0 || bytes % sizeof(float) != 0) return false;
  if (header.place != static_cast<std::uint64_t>(incoming.arrived)) return false;
  return bytes / sizeof(float) <= static_cast<std::uint64_t>(spec->values - incoming.arrived);
}

void BestModelServer::State::on_offer_values(Member& member, const network::FrameHeader& header,
                                             std::span<const std::byte> payload) {
  if (!follows(member, header, payload.size())) {
    broken(member.worker, "sent values of an offer that do not follow on those before");
  }
  SwampMember::Incoming& incoming = member.incoming;
  if (incoming.values) {
    float* place = incoming.values->data() + incoming.arrived;
    if (static_cast<const void*>(place) != payload.data()) {
      std::memcpy(place, payload.data(), payload.size());
    }
  }
  incoming.arrived += static_cast<std::int64_t>(payload.size() / sizeof(float));
  if (incoming.arrived == spec->values) offer_is_whole(member);
}

void BestModelServer::State::offer_is_whole(Member& member) {
  const SwampMember::Incoming whole = std::exchange(member.incoming, {});
  if (!whole.values) return;
  ++counters.offers;
  member.newest = whole.sequence;
  member.held.insert(whole.sequence);
  std::vector<Decision> decisions;
  policy->offer({.worker = member.worker,
                 .incarnation = member.incarnation,
                 .sequence = whole.sequence,
                 .claim = whole.claim,
                 .model = whole.values},
                decisions);
  for (const Decision& decision : decisions) tell(decision);
  examine_next();
}

void BestModelServer::State::examine_next() {
  if (examining || given_up) return;
  std::vector<Decision> decisions;
  std::optional<Examination> next = policy->next(decisions);
  for (const Decision& decision : decisions) tell(decision);
  if (next) {
    examining = std::move(next->candidate);
    ++counters.examined;
    ports.examine(++ticket, examining->model, next->draw);
  }
  if (next || decisions.empty()) return;
  finish_leaves();
  examine_pulls();
}

void BestModelServer::State::judge(const Judgement& judgement) {
  if (!judgement.best || !settings.keeps_state) return commit(judgement);
  pending = Pending{.judgement = judgement, .needs = 0, .tries = 0};
  snapshots.changes();
  pending->needs = request_snapshot();
}

void BestModelServer::State::commit(const Judgement& judgement) {
  pending.reset();
  examining.reset();
  policy->commit(judgement);
  if (judgement.best) {
    initial.values.reset();  // nobody begins with them any more
    ports.accepted(*judgement.best);
  }
  tell(judgement.decision);
  examine_next();
  finish_leaves();
  examine_pulls();
}

void BestModelServer::State::tell(const Decision& decision) {
  const OfferVerdict& verdict = decision.verdict;
  switch (verdict.kind) {
    case VerdictKind::kAccepted:
      ++counters.accepted;
      break;
    case VerdictKind::kRejected:
      ++counters.rejected;
      break;
    case VerdictKind::kDropped:
      ++counters.dropped;
      break;
    case VerdictKind::kReplaced:
      ++counters.replaced;
      break;
    case VerdictKind::kRefused:
      ++counters.refused;
      log("a model of worker " + std::to_string(decision.worker) +
          " is refused: " + verdict.reason);
      break;
  }
  Member& member = members[static_cast<std::size_t>(decision.worker)];
  if (decision.incarnation != member.incarnation) return;
  member.held.erase(verdict.sequence);
  if (verdict.kind == VerdictKind::kAccepted) member.own_version = verdict.version;
  member.verdicts[verdict.sequence] = verdict;
  if (member.presence == Presence::kPresent) send_verdict(member, verdict);
}

void BestModelServer::State::send_verdict(const Member& member, const OfferVerdict& verdict) {
  send(member, SwampFrame::kVerdict, verdict_header(verdict), encode_payload(verdict));
}

void BestModelServer::State::on_pull(Member& member, const network::FrameHeader& header) {
  if (header.detail > static_cast<std::uint32_t>(PullKind::kFinal)) {
    broken(member.worker, "asked for what there is not");
  }
  if (member.incoming.sequence != 0) broken(member.worker, "asked for a model amid an offer");
  if (member.leaving) broken(member.worker, "asked for a model after it had left");
  member.presence = Presence::kPresent;
  member.pull = SwampMember::Pull{.id = header.sequence,
                                  .kind = static_cast<PullKind>(header.detail),
                                  .has_version = header.place,
                                  .since = roster.now()};
  examine_pulls();
}

bool BestModelServer::State::all_judged() const {
  return !examining && (!policy || policy->standing().waiting == 0);
}

bool BestModelServer::State::others_may_offer(const Member& member) const {
  return std::any_of(members.begin(), members.end(), [&](const Member& other) {
    if (other.worker == member.worker || (other.done() && !other.incoming.sequence)) return false;
    const bool late = roster.now() - member.pull->since < settings.late_start;
    return other.expected() || (other.presence == Presence::kNever && late);
  });
}

void BestModelServer::State::examine_pulls() {
  for (Member& member : members) {
    if (member.pull) examine_pull(member);
  }
}

void BestModelServer::State::examine_pull(Member& member) {
  const SwampMember::Pull pull = *member.pull;
  const BestRecord& best = policy->best();
  std::optional<BestValue> value;
  if (pull.kind == PullKind::kPolicy) {
    value = policy->pull(std::max(pull.has_version, member.own_version));
  } else {
    if (!initialized) return;
    if (pull.kind == PullKind::kFinal && (!all_judged() || others_may_offer(member))) return;
    if (best.model) {
      value =
          BestValue{.model = best.model, .told = {.version = best.version, .score = best.score}};
    } else if (pull.kind == PullKind::kStart) {
      value = BestValue{.model = initial.values, .told = {}};
    }
    member.ended = pull.kind == PullKind::kFinal;
  }
  if (value) return send_model(member, value->model, value->told);
  if (pull.kind == PullKind::kPolicy) ++counters.pulls_with_nothing;
  member.pull.reset();
  network::FrameHeader header;
  header.sequence = pull.id;
  send(member, SwampFrame::kNothing, header);
}

void BestModelServer::State::send_model(Member& member, const ModelValues& model,
                                        const PulledModel& told) {
  network::FrameHeader header;
  header.sequence = member.pull->id;
  header.place = told.version;
  if (member.pull->kind == PullKind::kPolicy) ++counters.pulls;
  member.pull.reset();
  send(member, SwampFrame::kModel, header, encode_number(told.score));
  const std::span<const float> values(*model);
  for (std::size_t at = 0; at < values.size(); at += kSwampPieceValues) {
    header.place = at;
    const auto piece = values.subspan(at, std::min(kSwampPieceValues, values.size() - at));
    send(member, SwampFrame::kValues, header, std::as_bytes(piece), model);
  }
}

void BestModelServer::on_examined(std::uint64_t ticket, std::span<const float> losses,
                                  Deadline now) {
  State& state = *state_;
  state.roster.note_time(now);
  if (!state.examining || state.pending || ticket != state.ticket) return;
  state.judge(state.policy->examined(losses));
}

void BestModelServer::on_not_examined(std::uint64_t ticket, const std::string& why, Deadline now) {
  State& state = *state_;
  state.roster.note_time(now);
  if (!state.examining || state.pending || ticket != state.ticket) return;
  state.judge(
      refusal(*state.examining, state.policy->best().version, "it could not be examined: " + why));
}

}  // namespace cohort::swamp
