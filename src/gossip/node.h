// One rank among its neighbours: rounds of a gossip algorithm over frames that may be lost, doubled
// or come early, and neighbours that may be lost for good.
//
// No connections, no clocks, no threads: the owner calls it and carries its frames.
//
//   begin_round(x);                       then send what take_outgoing() gives
//   while (!complete()) on_frame(...)     for whatever comes; send take_outgoing() after each call
//   end_round(x);
//
// Rounds have numbers, the same on all ranks. A frame of a later round is kept until its time, one
// that came already is dropped, and when a later one shows that one is missing it is asked for
// again. Where the algorithm remembers its neighbours, each message carries a check over all of its
// sender's messages: when the check is wrong, or a neighbour is lost, the rank asks its neighbours
// for what they are believed to be and begins anew with that. A lost neighbour's weight goes to
// the rank itself, so that the weights still sum to 1. One that comes back is asked in the same
// way.
//
// Used from one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gossip/algorithm.h"
#include "gossip/frame.h"
#include "topology/topology.h"

namespace cohort::gossip {

class GossipNode {
 public:
  struct Outgoing {
    Rank to;
    std::shared_ptr<const Bytes> frame;
  };
  // What went wrong and was mended, since the node was made.
  struct Counts {
    std::uint64_t doubled = 0;   // frames that had come before
    std::uint64_t again = 0;     // asked for once more
    std::uint64_t rebuilt = 0;   // beginnings anew with the neighbours' estimates
    std::uint64_t left_out = 0;  // contributions to a round that could not be had
  };

  // Throws ConfigError when the graph changes and the algorithm needs it not to.
  GossipNode(Rank rank, std::shared_ptr<const topology::Topology> topology,
             std::unique_ptr<GossipAlgorithm> algorithm);

  const GossipAlgorithm& algorithm() const { return *algorithm_; }
  // In main memory; empty where the algorithm remembers nothing of its neighbours.
  std::vector<float> own_estimate() const;

  void start(std::span<const float> x) { algorithm_->start(x); }
  // Instead: the others have had `rounds` rounds. Begins in the place of a rank with these
  // parameters and this own_estimate(), and asks its neighbours what they are.
  void enter(std::uint64_t rounds, std::span<const float> x, std::span<const float> estimate);

  void begin_round(std::span<float> x);
  // `from` may be anybody. Throws PeerError when the frame is none, or from somebody who has no
  // business here.
  void on_frame(Rank from, Bytes frame);
  bool on_lost(Rank peer);  // whether that is news
  // Between rounds: it takes part again, from the next one on.
  void on_returned(Rank peer);
  // Nothing came for a while: asks those who are awaited.
  void ask();
  bool complete() const;
  void end_round(std::span<float> x);

  std::vector<Outgoing> take_outgoing();
  // Whose frames the round still needs.
  std::vector<Rank> awaited() const;
  std::uint64_t round() const { return round_; }
  const Counts& counts() const { return counts_; }

  // For checkpoints, between rounds: the algorithm's vectors and this node's numbers.
  std::vector<GossipAlgorithm::State> vectors() { return algorithm_->state(); }
  std::vector<std::pair<std::string, std::int64_t>> numbers() const;
  void set_number(const std::string& name, std::int64_t value);

 private:
  static constexpr std::size_t kHistory = 2;   // own frames kept for those who missed one
  static constexpr std::uint64_t kAhead = 64;  // rounds that a neighbour may be ahead

  struct Edge {
    std::uint64_t included = 0;                 // the last round of it that is in
    std::uint64_t check = 0;                    // of that
    std::map<std::uint64_t, Bytes> early = {};  // frames by round, this one's too
    bool asked = false;                         // for the message of this round, once more
    bool left_out = false;                      // of this round
  };

  void find_neighbours();
  bool is_neighbour(Rank rank, std::uint64_t round) const;
  bool is_near(Rank peer) const;  // a neighbour in a graph that does not change, lost or not
  void message_came(Rank from, const GossipHeader& header, Bytes frame);
  void answer_again(Rank from, const GossipHeader& header);
  void state_came(Rank from, const GossipHeader& header, std::span<const std::byte> payload);
  void leave_out(Rank from);
  void apply_ready();
  bool apply(const topology::Neighbour& from, Edge& edge);
  void begin_anew();
  void try_rebuild();
  void ask_again(Rank from, Edge& edge);
  void send(Rank to, const GossipHeader& header, std::span<const std::byte> payload);

  Rank rank_;
  std::shared_ptr<const topology::Topology> topology_;
  std::unique_ptr<GossipAlgorithm> algorithm_;
  NeighbourMemory* memory_;  // the algorithm's; null: none
  std::uint64_t round_ = 0;  // that was begun last
  std::uint64_t check_ = 0;  // of this rank's messages
  bool open_ = false;        // the round is under way
  std::size_t applied_ = 0;  // neighbours of this round that are in, from the first
  std::vector<topology::Neighbour> neighbours_;  // of the round, without those lost
  std::map<Rank, Edge> edges_;
  std::set<Rank> lost_;
  bool rebuilding_ = false;
  bool anew_ = false;  // to be done in the next round: the neighbours are not those remembered
  std::map<Rank, Bytes> states_;  // that came for it
  std::deque<std::pair<std::uint64_t, std::shared_ptr<const Bytes>>> history_;
  std::vector<Outgoing> outgoing_;
  Counts counts_;
};

}  // namespace cohort::gossip
