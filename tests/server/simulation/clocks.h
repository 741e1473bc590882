// The clocks of bounded staleness, as the oracle counts them from what crosses the wire.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/types.h"
#include "simulation/marks.h"

namespace cohort::simulation {

class Clocks {
 public:
  void asks_to_join(Rank rank) { at(rank).rejoining = true; }  // another process, for this rank
  void joined_anew(Rank rank);  // an incarnation begins, where the slowest of the others is
  void joined(Rank rank) { at(rank).live = true; }  // likewise, or comes back
  void answered(Rank rank, std::uint64_t sequence);
  void left(Rank rank) { at(rank).live = false; }
  void evicted(Rank rank) { at(rank).live = false; }

  // As they are found again by a server that starts from a snapshot of this moment.
  Clocks kept() const;

  // Whether the server may have given the rank up, or given it to another process.
  bool may_be_gone(Rank rank) const;
  bool rejoining(Rank rank) const { return seats_[static_cast<std::size_t>(rank)].rejoining; }
  // How far the rank is ahead of the slowest member; nothing where that is not known.
  std::optional<std::uint64_t> lead(Rank rank) const;

 private:
  struct Seat {
    bool live = false;
    bool rejoining = false;
    bool unsure = false;  // began at a clock that the wire does not show
    std::uint64_t clock = 0;
    std::uint64_t answered = 0;  // pushes of its incarnation
  };
  Seat& at(Rank rank) { return seats_[static_cast<std::size_t>(rank)]; }

  std::array<Seat, kMaxWorkers> seats_ = {};
};

}  // namespace cohort::simulation
