// Who takes part and where its clock is, as the oracle counts from what crosses the wire.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/types.h"
#include "simulation/marks.h"

namespace cohort::server::simulation {

class Clocks {
 public:
  void asks_to_join(Rank rank, int process) { at(rank).askers |= bit(process), ++at(rank).asked; }
  void joined_anew(Rank rank,
                   int process);  // an incarnation begins, where the slowest of the others is
  void joined(Rank rank);         // likewise, or comes back
  void answered(Rank rank, std::uint64_t sequence);
  // It asks for its last look, and holds up nobody while it waits for that, nor from then on until
  // it pushes again.
  void looks(Rank rank) { at(rank).looking = true; }
  void asks_for_values(Rank rank) { at(rank).looking = false; }
  void gets_values(Rank rank);
  void pushes(Rank rank) { at(rank).ended = false; }
  void disconnected(Rank rank) { at(rank).looking = false; }
  void left(Rank rank) { at(rank).live = false, at(rank).left = true; }
  void evicted(Rank rank) { at(rank).live = false; }

  // The job begins again. Who asks to join, still does.
  void begin_again();

  // As they are found again by a server that starts from a snapshot of this moment.
  Clocks kept() const;

  // Whether the server may have given the rank up, or given it to another process.
  bool may_be_gone(Rank rank) const;
  bool asked_for(Rank rank) const { return seat(rank).asked > 0; }
  bool rejoining(Rank rank) const { return seat(rank).rejoining(); }
  bool looking(Rank rank) const { return seat(rank).looking; }
  bool done(Rank rank) const { return seat(rank).done(); }
  // Whether the server knows that it has left: one that starts from an older snapshot does not, and
  // it is a member until it has said so again.
  bool has_left(Rank rank) const { return seat(rank).left; }
  // Somebody but `rank` who is a member and may push.
  std::optional<Rank> another_training(Rank rank) const;
  // How far the rank is ahead of the slowest member; nothing where that is not known.
  std::optional<std::uint64_t> lead(Rank rank) const;

 private:
  static std::uint64_t bit(int process) { return std::uint64_t{1} << (process % 64); }
  struct Seat {
    bool live = false;
    bool left = false;
    std::uint64_t askers = 0;  // other processes that want the place
    int asked = 0;             // connections, of one process several, for which nothing came of it
    bool open = false;         // found in a snapshot that may hold an incarnation that was not told
    bool unsure = false;       // began at a clock that the wire does not show
    bool looking = false;
    bool ended = false;
    std::uint64_t clock = 0;
    std::uint64_t answered = 0;  // pushes of its incarnation

    bool rejoining() const { return askers != 0; }
    bool done() const { return looking || ended; }
  };
  Seat& at(Rank rank) { return seats_[static_cast<std::size_t>(rank)]; }
  const Seat& seat(Rank rank) const { return seats_[static_cast<std::size_t>(rank)]; }

  std::array<Seat, kMaxWorkers> seats_ = {};
};

}  // namespace cohort::server::simulation
