#include "gossip/node.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace cohort::gossip {
namespace {

constexpr const char* kEdgePrefix = "check of ";
constexpr const char* kAnew = "anew";

}  // namespace

GossipNode::GossipNode(Rank rank, std::shared_ptr<const topology::Topology> topology,
                       std::unique_ptr<GossipAlgorithm> algorithm)
    : rank_(rank),
      topology_(std::move(topology)),
      algorithm_(std::move(algorithm)),
      memory_(algorithm_->memory()) {
  if (topology_->changes() && memory_ != nullptr) {
    throw ConfigError("--topology " + std::string(topology_->name()) +
                      " has other neighbours in every step, and this method remembers its own: use "
                      "--topology exponential, or --method d-psgd or deep-squeeze");
  }
}

void GossipNode::enter(std::uint64_t rounds, std::span<const float> x,
                       std::span<const float> estimate) {
  COHORT_CHECK(estimate.size() == own_estimate().size(), "an estimate of another model");
  if (memory_ != nullptr) {
    memory_->enter(x, estimate);
  } else {
    algorithm_->start(x);
  }
  round_ = rounds;
  check_ = 0;
  edges_.clear();
  anew_ = memory_ != nullptr;
}

std::vector<float> GossipNode::own_estimate() const {
  return memory_ != nullptr ? memory_->own_estimate() : std::vector<float>();
}

void GossipNode::find_neighbours() {
  neighbours_ = topology_->neighbours(rank_, static_cast<Step>(round_) - 1);
  std::erase_if(neighbours_,
                [&](const topology::Neighbour& one) { return lost_.contains(one.rank); });
}

bool GossipNode::is_neighbour(Rank rank, std::uint64_t round) const {
  const auto is_it = [&](const topology::Neighbour& one) { return one.rank == rank; };
  if (open_ && (round == round_ || !topology_->changes())) {
    return std::any_of(neighbours_.begin(), neighbours_.end(), is_it);
  }
  const auto all = topology_->neighbours(rank_, static_cast<Step>(round) - 1);
  return std::any_of(all.begin(), all.end(), is_it);
}

void GossipNode::send(Rank to, const GossipHeader& header, std::span<const std::byte> payload) {
  outgoing_.push_back({to, std::make_shared<const Bytes>(gossip_frame(header, payload))});
}

void GossipNode::begin_round(std::span<float> x) {
  COHORT_CHECK(!open_, "a round ends before the next begins");
  ++round_;
  open_ = true;
  applied_ = 0;
  for (auto& [rank, edge] : edges_) {
    edge.asked = false;
    edge.left_out = false;
  }
  find_neighbours();
  GossipRound round{round_, 0};
  for (const topology::Neighbour& neighbour : neighbours_) round.given += neighbour.weight;
  Bytes message;
  algorithm_->advance(x, round, message);
  const bool chained = memory_ != nullptr;
  check_ = gossip_check(chained ? check_ : 0, message);
  const auto frame =
      std::make_shared<const Bytes>(gossip_frame({GossipKind::kMessage, round_, check_}, message));
  history_.emplace_back(round_, frame);
  if (history_.size() > kHistory) history_.pop_front();
  for (const Rank to : topology_->receivers(rank_, static_cast<Step>(round_) - 1)) {
    if (!lost_.contains(to)) outgoing_.push_back({to, frame});
  }
  if (std::exchange(anew_, false)) begin_anew();
  apply_ready();
}

void GossipNode::on_frame(Rank from, Bytes frame) {
  const GossipHeader header = parse_gossip_header(frame);
  const auto payload = std::span<const std::byte>(frame).subspan(kGossipHeaderBytes);
  if (lost_.contains(from)) return;  // what was still under way when it was given up
  switch (header.kind) {
    case GossipKind::kMessage:
      message_came(from, header, std::move(frame));
      return;
    case GossipKind::kAgain:
      answer_again(from, header);
      return;
    case GossipKind::kGone: {
      Edge& edge = edges_[from];
      if (header.round != round_ || !open_ || edge.included >= round_) return;
      if (memory_ != nullptr) {
        begin_anew();
      } else {
        leave_out(from);
        apply_ready();
      }
      return;
    }
    case GossipKind::kWantState: {
      const std::vector<float> estimate = own_estimate();
      send(from, {GossipKind::kState, round_, check_}, std::as_bytes(std::span(estimate)));
      return;
    }
    case GossipKind::kState:
      state_came(from, header, payload);
      return;
  }
}

void GossipNode::message_came(Rank from, const GossipHeader& header, Bytes frame) {
  const std::uint64_t next = open_ ? round_ : round_ + 1;
  const bool no_round = header.round == 0 || header.round > round_ + kAhead;
  if (no_round || !is_neighbour(from, header.round)) {
    throw PeerError("rank " + std::to_string(from) + " sent a message of round " +
                    std::to_string(header.round) + " in round " + std::to_string(round_) +
                    ", which this rank does not expect of it");
  }
  Edge& edge = edges_[from];
  if (header.round < next || header.round <= edge.included || edge.early.contains(header.round)) {
    ++counts_.doubled;
    return;
  }
  edge.early.emplace(header.round, std::move(frame));
  // Messages of one sender keep their order: what is not here before a later one is lost.
  const bool passed_over =
      open_ && header.round > round_ && !edge.early.contains(round_) && edge.included < round_;
  if (passed_over) {
    const auto awaits = awaited();
    if (std::find(awaits.begin(), awaits.end(), from) != awaits.end()) ask_again(from, edge);
  }
  apply_ready();
}

void GossipNode::ask_again(Rank from, Edge& edge) {
  if (edge.asked) return;
  edge.asked = true;
  ++counts_.again;
  send(from, {GossipKind::kAgain, round_, 0}, {});
}

void GossipNode::answer_again(Rank from, const GossipHeader& header) {
  if (header.round > round_) return;  // it will come by itself
  for (const auto& [number, frame] : history_) {
    if (number == header.round) {
      outgoing_.push_back({from, frame});
      return;
    }
  }
  send(from, {GossipKind::kGone, header.round, 0}, {});
}

bool GossipNode::apply(const topology::Neighbour& from, Edge& edge) {
  if (edge.included >= round_ || edge.left_out) return true;
  const auto found = edge.early.find(round_);
  if (found == edge.early.end()) return false;
  const Bytes frame = std::move(found->second);
  edge.early.erase(found);
  const GossipHeader header = parse_gossip_header(frame);
  const auto payload = std::span<const std::byte>(frame).subspan(kGossipHeaderBytes);
  const bool chained = memory_ != nullptr;
  const std::uint64_t check = gossip_check(chained ? edge.check : 0, payload);
  if (check != header.check || (chained && edge.included + 1 != round_)) {
    if (chained) {
      begin_anew();
    } else {
      edge.asked = false;
      ask_again(from.rank, edge);
    }
    return false;
  }
  algorithm_->receive(from, {round_, 0}, payload);
  edge.included = round_;
  edge.check = check;
  return true;
}

// In the order of the ranks, so that the sums come out the same in every run.
void GossipNode::apply_ready() {
  if (!open_ || rebuilding_) return;
  while (applied_ < neighbours_.size()) {
    const topology::Neighbour& from = neighbours_[applied_];
    if (!apply(from, edges_[from.rank])) return;
    ++applied_;
  }
}

bool GossipNode::complete() const {
  return open_ && !rebuilding_ && applied_ == neighbours_.size();
}

std::vector<Rank> GossipNode::awaited() const {
  std::vector<Rank> ranks;
  for (const topology::Neighbour& neighbour : neighbours_) {
    const auto edge = edges_.find(neighbour.rank);
    const bool in =
        edge != edges_.end() &&
        (edge->second.left_out ||
         (rebuilding_ ? states_.contains(neighbour.rank)
                      : edge->second.included >= round_ || edge->second.early.contains(round_)));
    if (!in) ranks.push_back(neighbour.rank);
  }
  return ranks;
}

void GossipNode::end_round(std::span<float> x) {
  COHORT_CHECK(complete(), "a round ends when all of it is there");
  algorithm_->conclude(x);
  open_ = false;
}

// Its own message in the place of one that cannot be had: the weight stays with the rank.
void GossipNode::leave_out(Rank from) {
  for (const topology::Neighbour& neighbour : neighbours_) {
    Edge& edge = edges_[from];
    if (neighbour.rank != from || edge.left_out || edge.included >= round_) continue;
    edge.left_out = true;
    ++counts_.left_out;
    const auto own = std::span<const std::byte>(*history_.back().second);
    algorithm_->receive({rank_, neighbour.weight}, {round_, 0}, own.subspan(kGossipHeaderBytes));
  }
}

bool GossipNode::on_lost(Rank peer) {
  if (lost_.contains(peer)) return false;
  const bool remembers = memory_ != nullptr;
  if (open_ && !remembers) leave_out(peer);
  lost_.insert(peer);
  edges_.erase(peer);
  states_.erase(peer);
  std::erase_if(outgoing_, [&](const Outgoing& one) { return one.to == peer; });
  std::erase_if(neighbours_, [&](const topology::Neighbour& one) { return one.rank == peer; });
  applied_ = 0;
  const bool remembered = remembers && is_near(peer);
  if (remembered && open_) {
    begin_anew();
  } else if (remembered) {
    anew_ = true;
  } else {
    apply_ready();
  }
  return true;
}

void GossipNode::on_returned(Rank peer) {
  COHORT_CHECK(!open_, "between rounds");
  lost_.erase(peer);
  edges_.erase(peer);
  if (memory_ != nullptr && is_near(peer)) anew_ = true;
}

bool GossipNode::is_near(Rank peer) const {
  const auto all = topology_->neighbours(rank_, 0);
  return std::any_of(all.begin(), all.end(),
                     [&](const topology::Neighbour& one) { return one.rank == peer; });
}

void GossipNode::ask() {
  for (const Rank rank : awaited()) {
    if (rebuilding_) {
      send(rank, {GossipKind::kWantState, round_, 0}, {});
    } else {
      edges_[rank].asked = false;
      ask_again(rank, edges_[rank]);
    }
  }
}

void GossipNode::begin_anew() {
  ++counts_.rebuilt;
  rebuilding_ = true;
  states_.clear();
  for (const topology::Neighbour& neighbour : neighbours_) {
    send(neighbour.rank, {GossipKind::kWantState, round_, 0}, {});
  }
  try_rebuild();
}

void GossipNode::state_came(Rank from, const GossipHeader& header,
                            std::span<const std::byte> payload) {
  if (!rebuilding_) return;
  const std::size_t expected = own_estimate().size() * sizeof(float);
  if (payload.size() != expected) {
    throw PeerError("rank " + std::to_string(from) + " sent an estimate of " +
                    std::to_string(payload.size()) + " bytes instead of " +
                    std::to_string(expected));
  }
  Edge& edge = edges_[from];
  edge.included = header.round;
  edge.check = header.check;
  std::erase_if(edge.early, [&](const auto& one) { return one.first <= header.round; });
  states_[from].assign(payload.begin(), payload.end());
  try_rebuild();
}

void GossipNode::try_rebuild() {
  for (const topology::Neighbour& neighbour : neighbours_) {
    if (!states_.contains(neighbour.rank)) return;
  }
  memory_->forget_neighbours();
  std::vector<float> estimate(own_estimate().size());
  for (const topology::Neighbour& neighbour : neighbours_) {
    std::memcpy(estimate.data(), states_[neighbour.rank].data(), states_[neighbour.rank].size());
    memory_->take_estimate(neighbour, estimate);
  }
  rebuilding_ = false;
  states_.clear();
  applied_ = 0;
  apply_ready();
}

std::vector<GossipNode::Outgoing> GossipNode::take_outgoing() {
  return std::exchange(outgoing_, {});
}

std::vector<std::pair<std::string, std::int64_t>> GossipNode::numbers() const {
  std::vector<std::pair<std::string, std::int64_t>> all = {
      {"round", static_cast<std::int64_t>(round_)}, {"check", static_cast<std::int64_t>(check_)}};
  if (memory_ == nullptr) return all;
  // Those lost are there again when a run goes on.
  all.emplace_back(kAnew, anew_ || !lost_.empty() ? 1 : 0);
  for (const topology::Neighbour& neighbour : topology_->neighbours(rank_, 0)) {
    const auto edge = edges_.find(neighbour.rank);
    const std::uint64_t check = edge == edges_.end() ? 0 : edge->second.check;
    all.emplace_back(kEdgePrefix + std::to_string(neighbour.rank),
                     static_cast<std::int64_t>(check));
  }
  return all;
}

void GossipNode::set_number(const std::string& name, std::int64_t value) {
  const auto number = static_cast<std::uint64_t>(value);
  if (name == "round") {
    round_ = number;
    for (auto& [rank, edge] : edges_) edge.included = number;
  } else if (name == "check") {
    check_ = number;
  } else if (name == kAnew) {
    anew_ = number != 0;
  } else {
    Edge& edge = edges_[std::stoi(name.substr(std::strlen(kEdgePrefix)))];
    edge.check = number;
    edge.included = round_;
  }
}

}  // namespace cohort::gossip
