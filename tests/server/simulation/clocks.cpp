#include "simulation/clocks.h"

#include <algorithm>

namespace cohort::simulation {

void Clocks::joined_anew(Rank rank, int process) {
  Seat& seat = at(rank);
  const std::uint64_t askers = seat.askers & ~bit(process);
  seat = {.live = false, .askers = askers, .unsure = false, .clock = seat.clock, .answered = 0};
  std::optional<std::uint64_t> smallest;
  for (const Seat& each : seats_) {
    if (!each.live) continue;
    // Whether the server still counts one whose place is asked for, only the server knows.
    seat.unsure = seat.unsure || each.rejoining() || each.unsure;
    if (!each.rejoining()) smallest = std::min(smallest.value_or(each.clock), each.clock);
  }
  seat.clock = smallest.value_or(seat.clock);
}

void Clocks::answered(Rank rank, std::uint64_t sequence) {
  Seat& seat = at(rank);
  if (sequence <= seat.answered) return;
  seat.answered = sequence;
  ++seat.clock;
}

Clocks Clocks::kept() const {
  Clocks kept = *this;
  for (Seat& seat : kept.seats_) {
    if (!seat.rejoining()) continue;
    seat = {.live = true, .askers = 0, .unsure = true, .clock = seat.clock, .answered = 0};
  }
  return kept;
}

bool Clocks::may_be_gone(Rank rank) const {
  const Seat& seat = seats_[static_cast<std::size_t>(rank)];
  return seat.rejoining() || seat.unsure || !seat.live;
}

std::optional<std::uint64_t> Clocks::lead(Rank rank) const {
  const Seat& reader = seats_[static_cast<std::size_t>(rank)];
  if (reader.unsure) return {};
  std::uint64_t most = 0;
  for (const Seat& each : seats_) {
    if (!each.live || each.rejoining() || each.unsure || each.clock >= reader.clock) continue;
    most = std::max(most, reader.clock - each.clock);
  }
  return most;
}

}  // namespace cohort::simulation
