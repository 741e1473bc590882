#include "transport/metered.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace cohort::transport {

MeteredTransport::MeteredTransport(std::unique_ptr<Transport> inner)
    : Transport(inner->rank(), inner->size()), inner_(std::move(inner)), counters_(size()) {}

void MeteredTransport::send(Rank to, Tag tag, std::span<const std::byte> payload,
                            Deadline deadline) {
  inner_->send(to, tag, payload, deadline);
  counters_[to].bytes_sent.fetch_add(bytes_of(payload), std::memory_order_relaxed);
  counters_[to].messages_sent.fetch_add(1, std::memory_order_relaxed);
}

Message MeteredTransport::receive(Rank from, Tag tag, Deadline deadline) {
  Message message = inner_->receive(from, tag, deadline);
  count_received(message);
  return message;
}

std::optional<Message> MeteredTransport::receive_any(Tag tag, Deadline deadline) {
  std::optional<Message> message = inner_->receive_any(tag, deadline);
  if (message) count_received(*message);
  return message;
}

void MeteredTransport::count_received(const Message& message) {
  Counters& peer = counters_[message.from];
  peer.bytes_received.fetch_add(bytes_of(message.payload), std::memory_order_relaxed);
  peer.messages_received.fetch_add(1, std::memory_order_relaxed);
}

TransportTraffic MeteredTransport::traffic_with(Rank peer) const {
  COHORT_CHECK(peer >= 0 && peer < size(), "no rank " + std::to_string(peer));
  const Counters& counters = counters_[peer];
  return {counters.bytes_sent.load(std::memory_order_relaxed),
          counters.bytes_received.load(std::memory_order_relaxed),
          counters.messages_sent.load(std::memory_order_relaxed),
          counters.messages_received.load(std::memory_order_relaxed)};
}

TransportTraffic MeteredTransport::traffic() const {
  TransportTraffic sum;
  for (Rank peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const TransportTraffic part = traffic_with(peer);
    sum.bytes_sent += part.bytes_sent;
    sum.bytes_received += part.bytes_received;
    sum.messages_sent += part.messages_sent;
    sum.messages_received += part.messages_received;
  }
  return sum;
}

}  // namespace cohort::transport
