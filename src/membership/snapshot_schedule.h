// Which snapshot of a server's state is being written, and whether another one is wanted. One at a
// time; one that could not be written is tried again after a pause.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "core/clock.h"

namespace cohort::membership {

class SnapshotSchedule {
 public:
  // `make` makes the snapshot of that id, of what is then. It must not ask for another.
  explicit SnapshotSchedule(std::function<void(std::uint64_t id)> make) : make_(std::move(make)) {}

  void go_on_from(std::uint64_t id) { id_ = id; }  // after a restart
  // There is nothing to keep any more. Ids count on.
  void forget() { writing_.reset(), wanted_ = changed_ = false; }

  void changes() { changed_ = true; }  // something that a snapshot holds
  bool changed() const { return changed_; }
  void want() { wanted_ = true; }  // at the next tick
  bool wanted() const { return wanted_; }
  bool writing() const { return writing_.has_value(); }
  Deadline made_at() const { return made_at_; }  // the last one

  // The id of the one that will hold what is now: made at once if it can be.
  std::uint64_t request(Deadline now) {
    wanted_ = true;
    if (writing_ || (retry_at_ && now < *retry_at_)) return id_ + 1;
    wanted_ = changed_ = false;
    retry_at_.reset();
    made_at_ = now;
    writing_ = ++id_;
    make_(id_);
    return id_;
  }

  // Both: false for one that nobody waits for any more.
  bool written(std::uint64_t id) {
    if (writing_ != id) return false;
    writing_.reset();
    return true;
  }
  bool failed(std::uint64_t id, Deadline retry_at) {
    if (!written(id)) return false;
    wanted_ = changed_ = true;
    retry_at_ = retry_at;
    return true;
  }

 private:
  std::function<void(std::uint64_t)> make_;
  std::uint64_t id_ = 0;  // of the last one made
  std::optional<std::uint64_t> writing_ = {};
  bool wanted_ = false;
  bool changed_ = false;  // since the last one was made
  Deadline made_at_ = {};
  std::optional<Deadline> retry_at_ = {};
};

}  // namespace cohort::membership
