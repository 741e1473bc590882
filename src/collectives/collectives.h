// Operations in which every rank of a group takes part.
//
// One object per rank, used from one thread at a time. All ranks call the same operations in the
// same order with the same sizes and roots; a rank that does otherwise ends the operation with
// PeerError, never with wrong numbers taken for right ones.
//
// Every call has a deadline. A rank that is missing at the deadline, or has been destroyed, gives
// the others PeerError. After a PeerError the group is broken: buffers hold unspecified values,
// and every later call of this object throws PeerError at once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/types.h"

namespace cohort {

class Collectives {
 public:
  virtual ~Collectives() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

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
};

}  // namespace cohort
