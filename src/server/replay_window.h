// What a worker has pushed and the server has answered, but not yet written to disk: enough to
// repeat it to a server that was restarted from its last snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/aligned_vector.h"
#include "core/types.h"
#include "server/arena_view.h"

namespace cohort::server {

class ReplayWindow {
 public:
  struct Entry {
    std::uint64_t sequence = 0;
    std::uint64_t base = 0;
    AlignedVector<float> gradients = {};  // empty when `refused`
    std::vector<Rank> workers = {};       // kSync: of its round
    bool refused = false;                 // dropped or rejected: in no model, its number is used up
  };

  // Copies the gradients. Sequences ascend.
  void add(std::uint64_t sequence, std::uint64_t base, const ArenaView<const float>& gradients,
           std::vector<Rank> workers);
  void add_refused(std::uint64_t sequence);

  // Forgets everything up to `durable`. Whether there was anything.
  bool trim(std::uint64_t durable);
  void clear() { trim(~std::uint64_t{0}); }

  // The first entry after `sequence`, or null.
  Entry* after(std::uint64_t sequence);
  std::uint64_t last() const { return entries_.empty() ? 0 : entries_.back().sequence; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::deque<Entry> entries_;
  std::vector<AlignedVector<float>>
      spare_;  // memory to use again: fresh pages cost more than a copy
  std::size_t bytes_ = 0;
};

}  // namespace cohort::server
