// Bytes between the processes and ranks of a job, counted the same way for every method.
//
//   payload  the contents of messages: gradients, models, what is agreed upon
//   wire     what connections (network/link.h) carried for it, with the headers of frames,
//            heartbeats and TLS; what IP and TCP add is not seen. Only where there are connections:
//            none between threads, none for collectives of one host, none that MPI or NCCL make.
#pragma once

#include <atomic>
#include <cstdint>

namespace cohort {

// Over all ends as many bytes are sent as received.
struct Traffic {
  std::uint64_t sent = 0;  // payload
  std::uint64_t received = 0;
  std::uint64_t wire_sent = 0;
  std::uint64_t wire_received = 0;

  Traffic& operator+=(const Traffic& other) {
    sent += other.sent;
    received += other.received;
    wire_sent += other.wire_sent;
    wire_received += other.wire_received;
    return *this;
  }
  friend Traffic operator+(Traffic a, const Traffic& b) { return a += b; }
  friend Traffic operator-(const Traffic& a, const Traffic& b) {
    return {a.sent - b.sent, a.received - b.received, a.wire_sent - b.wire_sent,
            a.wire_received - b.wire_received};
  }
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// What connections add to as they go, those of a lost one included. Any thread reads it; each
// number is then exact for some moment, not all for the same.
struct TrafficMeter {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> wire_sent{0};
  std::atomic<std::uint64_t> wire_received{0};

  Traffic read() const { return {sent, received, wire_sent, wire_received}; }
};

}  // namespace cohort
