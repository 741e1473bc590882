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
  void asks_to_join(Rank rank, int process) { at(rank).askers |= bit(process); }
  void joined_anew(Rank rank,
                   int process);  // an incarnation begins, where the slowest of the others is
  void joined(Rank rank) { at(rank).live = true; }  // likewise, or comes back
  void answered(Rank rank, std::uint64_t sequence);
  // It will push nothing more; whether its clock counts, its connection decides.
  void done(Rank rank) { at(rank).unsure = true; }
  void left(Rank rank) { at(rank).live = false; }
  void evicted(Rank rank) { at(rank).live = false; }

  // As they are found again by a server that starts from a snapshot of this moment.
  Clocks kept() const;

  // Whether the server may have given the rank up, or given it to another process.
  bool may_be_gone(Rank rank) const;
  bool rejoining(Rank rank) const { return seats_[static_cast<std::size_t>(rank)].rejoining(); }
  // How far the rank is ahead of the slowest member; nothing where that is not known.
  std::optional<std::uint64_t> lead(Rank rank) const;

 private:
  static std::uint64_t bit(int process) { return std::uint64_t{1} << (process % 64); }
  struct Seat {
    bool live = false;
    std::uint64_t askers = 0;  // other processes that want the place
    bool unsure = false;       // began at a clock that the wire does not show
    std::uint64_t clock = 0;
    std::uint64_t answered = 0;  // pushes of its incarnation

    bool rejoining() const { return askers != 0; }
  };
  Seat& at(Rank rank) { return seats_[static_cast<std::size_t>(rank)]; }

  std::array<Seat, kMaxWorkers> seats_ = {};
};

}  // namespace cohort::simulation
