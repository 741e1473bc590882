// Collectives over any transport.
//
// Cost for P ranks and S bytes, in messages and payload bytes sent by the whole group:
//
//   all_reduce, S >= kRingBytes   2 P (P - 1) messages   2 (P - 1) S bytes   2 (P - 1) rounds
//     A ring: P - 1 rounds of reduce-scatter, P - 1 of all-gather; each rank sends to its right and
//     receives from its left 2 (P - 1) messages of S / P (Patarasuk, Yuan 2009). Chunk c is summed
//     in the order c, c + 1, ..., P - 1, 0, ..., c - 1.
//   all_reduce, smaller S         2 (P - 1) messages     2 (P - 1) S bytes   2 rounds
//     Rank 0 gathers, sums in the order 0, 1, ..., P - 1, and sends the sum to each.
//   all_gather, blocks of S       P (P - 1) messages     P (P - 1) S bytes   P - 1 rounds; ring
//   broadcast                     P - 1 messages         (P - 1) S bytes     log2 P rounds; a tree
//   barrier                       P log2 P messages      none                log2 P rounds;
//     dissemination (Hensgen, Finkel, Manber 1988)
//
// Every sum is made on one rank in a fixed order and then copied, so all ranks get the same bits.
// The order differs between ring and gather, and so may the last bits of the two.
//
// Every message's tag holds its operation and its round, so that after a lost message nothing else
// is taken in its place: the operation fails at its deadline. A PeerError names the rank whose
// message was missing; in a ring or a tree that rank may itself have been waiting for another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "collectives/collectives.h"
#include "transport/transport.h"

namespace cohort::collectives {

class OverTransport final : public Collectives {
 public:
  // Sums shorter than this are gathered: a ring's rounds would cost more than its bytes save.
  static constexpr std::size_t kRingBytes = std::size_t{16} * 1024;

  static constexpr int kMaxSize = 4096;  // what a tag has room for

  // Uses the tags from kFirstReservedTag on; the transport may carry other tags meanwhile, but not
  // those of a second object like this. Throws ConfigError when the group is larger than kMaxSize.
  explicit OverTransport(std::shared_ptr<transport::Transport> transport);

  void all_reduce(std::span<float> values, Deadline deadline) override;
  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override;
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override;
  void barrier(Deadline deadline) override;

  // Closes the transport too, and so do the others' objects when they learn of it.
  void leave(const std::string& reason) override;

  Traffic traffic() const override { return {sent_.load(), received_.load()}; }

 private:
  enum class Kind : transport::Tag {
    kReduceScatter,
    kReduceGather,
    kSmallReduce,
    kSmallResult,
    kAllGather,
    kBroadcast,
    kBarrier,
    kFarewell  // of no operation: why a rank left
  };

  transport::Tag tag(Kind kind, int round = 0) const;
  static transport::Tag farewell_tag();
  void ring_reduce(std::span<float> values, Deadline deadline);
  void gather_reduce(std::span<float> values, Deadline deadline);
  void send(Rank to, transport::Tag tag, std::span<const std::byte> bytes, Deadline deadline);
  Bytes receive(Rank from, transport::Tag tag, Deadline deadline);
  Bytes receive_exactly(Rank from, transport::Tag tag, std::size_t bytes, Deadline deadline);

  // Gives the group up for `failure`, unless it was before; returns why it was given up first.
  std::string give_up(const std::string& failure);

  // Throws what a rank that left gave as its reason, if one did.
  void heed_farewell();

  // Tells the others why this rank leaves, and closes.
  void part(const std::string& text);

  // Runs `operation` unless an earlier one failed, and remembers if this one does.
  template <class Operation>
  auto guarded(Operation&& operation);

  Rank right() const { return (rank() + 1) % size(); }
  Rank left() const { return (rank() + size() - 1) % size(); }

  std::shared_ptr<transport::Transport> transport_;
  std::uint32_t operation_ = 0;  // how many were begun; all ranks count alike
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
  std::mutex mutex_;     // guards the next line
  std::string failure_;  // empty while the group is whole
};

}  // namespace cohort::collectives
