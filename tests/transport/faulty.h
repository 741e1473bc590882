// Makes another transport misbehave, repeatably: the fault-injection tests run over this.
//
// It does what a network or a dying process may do within the transport's contract: delay, lose,
// fall silent. It does not duplicate or reorder, which the contract rules out. Faults strike when
// sending and are drawn from (seed, rank) in the order of the sends, so that a rank that sends from
// one thread meets the same faults in every run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "core/random.h"
#include "transport/transport.h"

namespace cohort::transport {

struct FaultPlan {
  Seed seed = 0;
  double drop_probability = 0;   // the message is lost; the sender does not learn of it
  double delay_probability = 0;  // the send takes `delay` longer, but not past its deadline
  std::chrono::nanoseconds delay{0};
  std::optional<std::int64_t> close_after =
      {};  // the send after this many closes the transport instead
};

class FaultyTransport final : public Transport {
 public:
  // Throws ConfigError when a probability is outside 0 to 1 or a duration or count is negative.
  FaultyTransport(std::unique_ptr<Transport> inner, FaultPlan plan);

  void send(Rank to, Tag tag, std::span<const std::byte> payload, Deadline deadline) override;
  Message receive(Rank from, Tag tag, Deadline deadline) override {
    return inner_->receive(from, tag, deadline);
  }
  std::optional<Message> receive_any(Tag tag, Deadline deadline) override {
    return inner_->receive_any(tag, deadline);
  }
  std::string gone(Rank peer) const override { return inner_->gone(peer); }
  void give_up(Rank peer) override { inner_->give_up(peer); }
  void close() override;

 private:
  void wait(Deadline until);

  std::unique_ptr<Transport> inner_;
  const FaultPlan plan_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable closed_changed_;
  RandomStream random_;
  std::int64_t sends_ = 0;
  bool closed_ = false;
};

}  // namespace cohort::transport
