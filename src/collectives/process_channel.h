// This process's member of one channel of the memory that processes share. For process_shared.cpp
// alone; what it does is told in process_shared.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "collectives/auto_tuner.h"
#include "collectives/collectives.h"
#include "collectives/process_layout.h"
#include "collectives/process_owner.h"

namespace cohort::collectives {

// One member of the collectives of a channel. For one thread at a time, but leave() may come from
// another. Destroying it tells the others that this member has left.
class ProcessChannel final : public Collectives {
 public:
  ProcessChannel(std::shared_ptr<SharedByProcesses> shared, int channel);
  ~ProcessChannel() override;

  void all_reduce(std::span<float> values, Deadline deadline) override;
  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override;
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override;
  void barrier(Deadline deadline) override {
    ++operation_;
    begin(process_layout::Kind::kBarrier, 0, 0, deadline);
  }
  void leave(const std::string& reason) override;
  Traffic traffic() const override { return {sent_.load(), received_.load()}; }

 private:
  void begin(process_layout::Kind kind, std::size_t bytes, Rank root, Deadline deadline,
             std::uint64_t address = process_layout::kStaged);
  void meet(process_layout::Kind kind, Deadline deadline);
  void fail(const std::string& reason, bool orderly = false);
  void small_all_reduce(std::span<float> values, Deadline deadline);
  void long_all_reduce(std::span<float> values, Deadline deadline);
  struct Staging {
    bool streamed = false;  // writes past the caches
    bool begun = false;     // all have come to the operation
  };
  void staged_all_reduce(std::span<float> values, Staging staging, Deadline deadline);
  void direct_all_reduce(std::span<float> values, Deadline deadline);
  bool all_gave_addresses() const;
  void read(int from, std::size_t offset, std::span<float> out);
  void copy_in(std::span<float> chunk, std::uint64_t turn, bool streamed);
  void sum(std::span<float> chunk, std::uint64_t turn, bool streamed);
  void copy_out(std::span<float> chunk, std::uint64_t turn);
  std::string find_mismatch() const;
  std::string missing(process_layout::Kind kind, double waited,
                      const std::function<bool(int)>& come) const;
  void count(std::uint64_t sent, std::uint64_t received) {
    sent_.fetch_add(sent, std::memory_order_relaxed);
    received_.fetch_add(received, std::memory_order_relaxed);
  }

  process_layout::ChannelHead& head() const {
    return *std::launder(reinterpret_cast<process_layout::ChannelHead*>(memory_));
  }
  process_layout::Seat& seat(int member) const {
    return *std::launder(reinterpret_cast<process_layout::Seat*>(memory_ + layout_.seat(member)));
  }
  process_layout::Arrival& arrival(int member) const {
    return seat(member).arrivals[operation_ % 2];
  }
  float* floats(std::size_t place) const { return reinterpret_cast<float*>(memory_ + place); }

  std::shared_ptr<SharedByProcesses> shared_;
  const process_layout::Layout layout_;
  const int channel_;
  std::byte* const memory_;
  std::vector<const float*> inputs_;  // by member; kept to save the allocation
  std::vector<float> room_;           // for what is read of the others; the same
  AutoTuner ways_;                    // of summing long vectors; member 0's counts
  AutoTuner small_ways_;              // of writing short ones, likewise
  bool small_streamed_ = true;        // past the caches: how the next short one is written
  bool small_next_streamed_ = false;  // what member 0 will say of the one after
  std::uint32_t operation_ = 0;       // how many were begun; all members count alike
  std::uint64_t turn_ = 0;            // how many chunks passed; all members count alike
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
};

}  // namespace cohort::collectives
