// Operations in which every rank of a group takes part.
//
// One object per rank, used from one thread at a time. All ranks call the same operations in the
// same order with the same sizes and roots; a rank that does otherwise ends the operation with
// PeerError, never with wrong numbers taken for right ones.
//
// Every call has a deadline. A rank that is missing at the deadline, or has left, gives the others
// PeerError. After a PeerError the group is broken: buffers hold unspecified values, and every
// later call of this object throws PeerError at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/traffic.h"
#include "core/types.h"

namespace cohort::collectives {

class Collectives {
 public:
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  virtual ~Collectives() = default;  // leaves

  Rank rank() const { return rank_; }
  int size() const { return size_; }
  // How many took part in the last operation: all, unless the group goes on without those lost.
  virtual int present() const { return size(); }

  // Replaces `values` by the element-wise sum over all ranks. The result has the same bits on every
  // rank, and in every run with the same inputs and the same size(). `values` may be empty; its
  // length is equal on all ranks.
  virtual void all_reduce(std::span<float> values, Deadline deadline) = 0;

  // What each rank contributed, by rank; lengths may differ.
  virtual std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) = 0;

  // Replaces `bytes` by those of `root`. The length is equal on all ranks.
  virtual void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) = 0;

  // Returns when every rank has called it.
  virtual void barrier(Deadline deadline) = 0;

  // Leaves the group for good: the others' calls, waiting ones too, end with PeerError, whose
  // message holds `reason`. May be called from any thread; of several calls the first counts.
  virtual void leave(const std::string& reason) = 0;

  // Payload that this rank sent and received so far, this group alone, by network or through shared
  // memory. May be called from any thread.
  virtual Traffic traffic() const = 0;

 protected:
  Collectives(Rank rank, int size) : rank_(rank), size_(size) {}

 private:
  const Rank rank_;
  const int size_;
};

}  // namespace cohort::collectives
