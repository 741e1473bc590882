// A process of the simulated group: its machine, and what its owner does.
#pragma once

#include "simulation/world.h"

namespace cohort::membership::simulation {

class GroupWorld::Process final : public ElasticGroup::Ports {
 public:
  Process(GroupWorld& world, int own_id, Rank own_rank, bool enters)
      : world_(world),
        id(own_id),
        rank(own_rank),
        link(static_cast<std::size_t>(world.plan_.size), -1),
        counted(link.size(), false),
        gossip(link.size(), 0),
        seats(link.size(), 0),
        address(link.size(), 0) {
    if (!enters) machine.emplace(rank, world.plan_.size, *this);
    entered = !enters;
    for (Rank other = 0; other < world.plan_.size; ++other) seats[other] = address[other] = other;
  }

  void send(Rank to, Bytes message) override {
    world_.send(*this, to, {Parcel::kElastic, std::move(message)});
  }
  void give_up(Rank to, Bytes last_word) override {
    if (gone(to)) return;
    if (!last_word.empty()) send(to, std::move(last_word));
    world_.close(*this, to);
  }
  bool readmit(Rank other) override {
    counted[other] = link[other] >= 0;
    return counted[other];
  }
  std::optional<bool> has_ended(Rank other) override;
  std::string introduce(Rank other, const std::string& text) override;
  void leads() override {}

  bool gone(Rank other) const { return link[other] < 0 || !counted[other]; }
  bool runs() const { return alive && !paused; }

 private:
  GroupWorld& world_;

 public:
  const int id;
  const Rank rank;
  bool alive = true;
  bool paused = false;
  cohort::simulation::Time paused_at = 0;
  bool stopped = false;       // was, for seconds, since its last answer
  bool last_stopped = false;  // likewise when it got that
  Stage stage = Stage::kIn;
  double rate = 1;                    // of its clock
  std::vector<int> link;              // by rank; -1: none
  std::vector<bool> counted;          // by rank: the link is one to a present rank
  std::vector<std::uint64_t> gossip;  // by rank: the last round of it that came
  std::vector<int> seats;             // by rank: the process that was let in last
  std::vector<int> address;           // by rank: the process that it last heard of
  std::optional<ElasticGroup> machine;
  std::deque<std::pair<Rank, Bytes>> inbox = {};  // before there is a machine
  std::uint64_t generation = 0;                   // of what its owner waits for
  bool wants_to_contribute = false;
  bool alone = false;  // went on where others had ended, from another answer
  bool entered = false;
  bool must_hear = false;   // the reason for which somebody left
  std::uint64_t taken = 0;  // answers
  Bytes last = {};          // answer
  bool has_last = false;
  // While it looks for the group:
  cohort::simulation::Time until = 0;
  Rank door = 0;
  bool asked = false;
};

}  // namespace cohort::membership::simulation
