// Counts what passes through another transport, so that no method can be wrong, or flattering,
// about its own traffic. Links (network/link.h) count in the same way what they carry.
//
// Counted are payload bytes and messages whose send or receive succeeded. Counts may be read while
// other threads use the transport; each number is then exact for some moment, not all for the same.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace cohort::transport {

struct TransportTraffic {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;

  friend bool operator==(const TransportTraffic&, const TransportTraffic&) = default;
};

class MeteredTransport final : public Transport {
 public:
  explicit MeteredTransport(std::unique_ptr<Transport> inner);

  // From now on a message counts what this says instead of its length: of one that only points to
  // memory that ranks share. Before this rank sends any.
  void count_by(std::function<std::size_t(std::span<const std::byte>)> bytes) {
    bytes_ = std::move(bytes);
  }

  // Since construction, with all other ranks. What a rank sends to itself is not traffic.
  TransportTraffic traffic() const;

  // With one rank, which may be this one.
  TransportTraffic traffic_with(Rank peer) const;

  void send(Rank to, Tag tag, std::span<const std::byte> payload, Deadline deadline) override;
  Message receive(Rank from, Tag tag, Deadline deadline) override;
  std::optional<Message> receive_any(Tag tag, Deadline deadline) override;
  std::string gone(Rank peer) const override { return inner_->gone(peer); }
  void readmit(Rank peer) override { inner_->readmit(peer); }
  void give_up(Rank peer) override { inner_->give_up(peer); }
  void close() override { inner_->close(); }

 private:
  struct Counters {
    std::atomic<std::uint64_t> bytes_sent{0};
    std::atomic<std::uint64_t> bytes_received{0};
    std::atomic<std::uint64_t> messages_sent{0};
    std::atomic<std::uint64_t> messages_received{0};
  };

  void count_received(const Message& message);
  std::size_t bytes_of(std::span<const std::byte> payload) const {
    return bytes_ ? bytes_(payload) : payload.size();
  }

  std::unique_ptr<Transport> inner_;
  std::vector<Counters> counters_;  // by peer
  std::function<std::size_t(std::span<const std::byte>)> bytes_;
};

}  // namespace cohort::transport
