#include "simulation/clocks.h"

#include <algorithm>

namespace cohort::server::simulation {

void Clocks::joined_anew(Rank rank, int process) {
  Seat& seat = at(rank);
  Seat fresh;
  fresh.askers = seat.askers & ~bit(process);
  fresh.asked = seat.asked - 1;
  fresh.clock = seat.clock;
  seat = fresh;
  std::optional<std::uint64_t> smallest;
  for (const Seat& each : seats_) {
    if (!each.live || each.done()) continue;
    // Whether the server still counts one whose place is asked for, only the server knows.
    seat.unsure = seat.unsure || each.rejoining() || each.unsure;
    if (!each.rejoining()) smallest = std::min(smallest.value_or(each.clock), each.clock);
  }
  // With nobody to begin beside, it is where it was when it asked, if only there is such a place.
  const bool at_zero =
      std::all_of(seats_.begin(), seats_.end(), [](const Seat& each) { return each.clock == 0; });
  if (!smallest && !at_zero) seat.unsure = true;
  seat.clock = smallest.value_or(seat.clock);
}

void Clocks::joined(Rank rank) {
  Seat& seat = at(rank);
  seat.live = !seat.left;
  seat.open = seat.looking = false;
}

void Clocks::answered(Rank rank, std::uint64_t sequence) {
  Seat& seat = at(rank);
  if (sequence <= seat.answered) return;
  seat.answered = sequence;
  ++seat.clock;
}

void Clocks::gets_values(Rank rank) {
  Seat& seat = at(rank);
  seat.ended = seat.looking;
  seat.looking = false;
}

void Clocks::begin_again() {
  for (Seat& seat : seats_) {
    Seat fresh;
    fresh.askers = seat.askers;
    fresh.asked = seat.asked;
    seat = fresh;
  }
}

Clocks Clocks::kept() const {
  Clocks kept = *this;
  for (Seat& seat : kept.seats_) {
    seat.looking = seat.ended = false;
    seat.asked = 0;
    if (!seat.rejoining()) continue;
    // Of whom it is then, the one that comes with its incarnation or another, is not known yet.
    seat.live = seat.open = seat.unsure = true;
    seat.askers = seat.answered = 0;
  }
  return kept;
}

bool Clocks::may_be_gone(Rank rank) const {
  return seat(rank).rejoining() || seat(rank).open || !(seat(rank).live || seat(rank).left);
}

std::optional<Rank> Clocks::another_training(Rank rank) const {
  for (Rank other = 0; other < kMaxWorkers; ++other) {
    const Seat& each = seat(other);
    if (other != rank && each.live && !each.done() && !each.open && !each.rejoining()) return other;
  }
  return {};
}

std::optional<std::uint64_t> Clocks::lead(Rank rank) const {
  const Seat& reader = seat(rank);
  if (reader.unsure) return {};
  std::uint64_t most = 0;
  for (const Seat& each : seats_) {
    if (!each.live || each.rejoining() || each.unsure || each.done()) continue;
    if (each.clock < reader.clock) most = std::max(most, reader.clock - each.clock);
  }
  return most;
}

}  // namespace cohort::server::simulation
