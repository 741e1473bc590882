// One simulated connection: two channels, each in order, either of which may end at any moment.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"
#include "network/frame.h"
#include "network/overlap.h"
#include "simulation/virtual_time.h"

namespace cohort::server::simulation {

enum End : std::uint32_t { kServerEnd = 0, kWorkerEnd = 1 };
inline End other(End end) { return end == kServerEnd ? kWorkerEnd : kServerEnd; }

struct Parcel {
  network::FrameHeader header = {};
  Bytes payload = {};
  std::span<const std::byte> lent = {};  // the sender's memory, until it says that it changes it
  bool last = false;                     // no frame: the channel has ended

  std::span<const std::byte> bytes() const {
    return lent.empty() ? std::span<const std::byte>(payload) : lent;
  }
  void copy_lent() {
    if (lent.empty()) return;
    payload.assign(lent.begin(), lent.end());
    lent = {};
  }
};

// What is on its way towards one end. Parcels leave in the order they came.
class Channel {
 public:
  bool empty() const { return first_ == parcels_.size(); }
  std::size_t size() const { return parcels_.size() - first_; }
  Parcel& front() { return parcels_[first_]; }
  void push(Parcel parcel) { parcels_.push_back(std::move(parcel)); }
  void pop() {
    ++first_;
    reading = false;
  }
  void keep_first(std::size_t count) {
    if (count == 0) reading = false;
    if (count < size()) parcels_.resize(first_ + count);
  }
  void copy_lent(std::span<const std::byte> memory) {
    for (std::size_t i = first_; i < parcels_.size(); ++i) {
      if (network::overlap(parcels_[i].lent, memory)) parcels_[i].copy_lent();
    }
  }
  void copy_lent() {
    for (std::size_t i = first_; i < parcels_.size(); ++i) parcels_[i].copy_lent();
  }

  cohort::simulation::Time last_arrival = 0;
  cohort::simulation::Time clogged_until = 0;
  bool cut = false;                 // what is sent from now on goes nowhere
  int waiting = 0;                  // parcels that have arrived at a process that is stopped
  bool reading = false;             // the first piece of the front parcel has been taken
  std::span<std::byte> place = {};  // where the receiver wants it

 private:
  std::vector<Parcel> parcels_;
  std::size_t first_ = 0;
};

struct Wire {
  std::uint32_t id = 0;
  int process = 0;
  int boot = 0;                                        // of the server
  std::array<bool, 2> open = {true, true};             // whether the end still holds it
  bool introduced = false;                             // the server knows whose it is
  std::array<cohort::simulation::Time, 2> heard = {};  // when the end heard anything last
  std::array<Channel, 2> towards = {};
};

}  // namespace cohort::server::simulation
