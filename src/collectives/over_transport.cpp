#include "collectives/over_transport.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "collectives/chunks.h"
#include "collectives/farewell.h"
#include "core/error.h"

namespace cohort::collectives {
namespace {

constexpr std::chrono::milliseconds kFarewellLook{100};
constexpr std::chrono::seconds kLastWordTime{1};  // a peer that takes longer does without

std::span<float> piece(std::span<float> values, int parts, int index) {
  const Range chunk = chunk_of(static_cast<std::int64_t>(values.size()), parts, index);
  return values.subspan(chunk.begin, chunk.size);
}

// sum = first + second, where one of them is `values` and the other arrived as bytes. Addition of
// two numbers is the same in both orders, so only who is added when matters.
void add(const Bytes& arrived, std::span<float> values) {
  constexpr std::size_t kBlock = 1024;
  float block[kBlock];
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, values.size() - begin);
    std::memcpy(block, arrived.data() + begin * sizeof(float), count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i) values[begin + i] += block[i];
  }
}

void assign(const Bytes& arrived, std::span<std::byte> out) {
  if (!out.empty()) std::memcpy(out.data(), arrived.data(), out.size());
}

}  // namespace

OverTransport::OverTransport(std::shared_ptr<transport::Transport> transport)
    : Collectives(transport->rank(), transport->size()), transport_(std::move(transport)) {
  if (size() > kMaxSize) {
    throw ConfigError("collectives over a transport serve at most " + std::to_string(kMaxSize) +
                      " ranks, not " + std::to_string(size()));
  }
}

transport::Tag OverTransport::tag(Kind kind, int round) const {
  // 1 bit that says reserved, 3 of kind, 12 of round, 16 of operation.
  return transport::kFirstReservedTag | static_cast<transport::Tag>(kind) << 28 |
         static_cast<transport::Tag>(round) << 16 | (operation_ & 0xffff);
}

transport::Tag OverTransport::farewell_tag() {
  return transport::kFirstReservedTag | static_cast<transport::Tag>(Kind::kFarewell) << 28;
}

template <class Operation>
auto OverTransport::guarded(Operation&& operation) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw PeerError("the group is broken since: " + failure_);
  }
  ++operation_;
  try {
    return operation();
  } catch (const PeerError& error) {
    throw PeerError(give_up(error.what()));
  }
}

void OverTransport::heed_farewell() {
  std::optional<transport::Message> farewell;
  try {
    farewell = transport_->try_receive(farewell_tag());
  } catch (const PeerError&) {  // this rank has left itself: give_up() knows why
  }
  if (!farewell) return;
  const std::string reason(reinterpret_cast<const char*>(farewell->payload.data()),
                           farewell->payload.size());
  // Those who wait for this rank must hear it too.
  part(reason);
  throw PeerError(reason);
}

std::string OverTransport::give_up(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = failure;
  return failure_;
}

void OverTransport::part(const std::string& text) {
  for (Rank to = 0; to < size(); ++to) {
    if (to == rank()) continue;
    try {
      transport_->send(to, farewell_tag(), std::as_bytes(std::span(text)),
                       deadline_in(kLastWordTime));
    } catch (const PeerError&) {  // it has left as well
    }
  }
  transport_->close();
}

void OverTransport::leave(const std::string& reason) {
  const std::string text = farewell("rank " + std::to_string(rank()), reason);
  if (give_up(text) == text) part(text);
}

void OverTransport::send(Rank to, transport::Tag tag, std::span<const std::byte> bytes,
                         Deadline deadline) {
  transport_->send(to, tag, bytes, deadline);
  sent_ += bytes.size();
}

Bytes OverTransport::receive(Rank from, transport::Tag tag, Deadline deadline) {
  const auto start = Clock::now();
  while (true) {
    // A rank that left said so to everybody, also to those who wait for others.
    const Deadline look_up = std::min(deadline, deadline_in(kFarewellLook));
    try {
      transport::Message message = transport_->receive(from, tag, look_up);
      received_ += message.payload.size();
      return std::move(message.payload);
    } catch (const PeerError&) {
      const auto now = Clock::now();
      heed_farewell();
      if (now < look_up) throw;
      if (now >= deadline) {
        char waited[32];
        std::snprintf(waited, sizeof waited, "%.3g s", seconds_between(start, now));
        throw PeerError("rank " + std::to_string(rank()) + ": nothing came from rank " +
                        std::to_string(from) + " within " + waited);
      }
    }
  }
}

void OverTransport::all_reduce(std::span<float> values, Deadline deadline) {
  guarded([&] {
    if (size() == 1) return;
    if (values.size_bytes() >= kRingBytes) {
      ring_reduce(values, deadline);
    } else {
      gather_reduce(values, deadline);
    }
  });
}

void OverTransport::ring_reduce(std::span<float> values, Deadline deadline) {
  const int parts = size();
  for (int round = 0; round + 1 < parts; ++round) {
    const auto outgoing = piece(values, parts, (rank() + parts - round) % parts);
    const auto incoming = piece(values, parts, (rank() + 2 * parts - round - 1) % parts);
    const transport::Tag step = tag(Kind::kReduceScatter, round);
    send(right(), step, std::as_bytes(outgoing), deadline);
    add(receive_exactly(left(), step, incoming.size_bytes(), deadline), incoming);
  }
  for (int round = 0; round + 1 < parts; ++round) {
    const auto outgoing = piece(values, parts, (rank() + 1 + parts - round) % parts);
    const auto incoming = piece(values, parts, (rank() + parts - round) % parts);
    const transport::Tag step = tag(Kind::kReduceGather, round);
    send(right(), step, std::as_bytes(outgoing), deadline);
    assign(receive_exactly(left(), step, incoming.size_bytes(), deadline),
           std::as_writable_bytes(incoming));
  }
}

void OverTransport::gather_reduce(std::span<float> values, Deadline deadline) {
  if (rank() != 0) {
    send(0, tag(Kind::kSmallReduce), std::as_bytes(values), deadline);
    assign(receive_exactly(0, tag(Kind::kSmallResult), values.size_bytes(), deadline),
           std::as_writable_bytes(values));
    return;
  }
  for (Rank from = 1; from < size(); ++from) {
    add(receive_exactly(from, tag(Kind::kSmallReduce), values.size_bytes(), deadline), values);
  }
  for (Rank to = 1; to < size(); ++to) {
    send(to, tag(Kind::kSmallResult), std::as_bytes(values), deadline);
  }
}

std::vector<Bytes> OverTransport::all_gather(std::span<const std::byte> own, Deadline deadline) {
  return guarded([&] {
    std::vector<Bytes> all(size());
    all[rank()].assign(own.begin(), own.end());
    for (int round = 0; round + 1 < size(); ++round) {
      const Rank outgoing = (rank() + size() - round) % size();
      const Rank incoming = (rank() + 2 * size() - round - 1) % size();
      const transport::Tag step = tag(Kind::kAllGather, round);
      send(right(), step, all[outgoing], deadline);
      all[incoming] = receive(left(), step, deadline);
    }
    return all;
  });
}

void OverTransport::broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) {
  COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
  guarded([&] {
    // A binomial tree over the ranks renumbered from the root: the parent of a number is the number
    // without its lowest set bit.
    const int own = (rank() + size() - root) % size();
    const auto real = [&](int number) { return (number + root) % size(); };
    int bit = 1;
    while (bit < size() && (own & bit) == 0) bit <<= 1;
    if (own != 0) {
      assign(receive_exactly(real(own - bit), tag(Kind::kBroadcast), bytes.size(), deadline),
             bytes);
    }
    for (bit >>= 1; bit > 0; bit >>= 1) {
      if (own + bit < size()) send(real(own + bit), tag(Kind::kBroadcast), bytes, deadline);
    }
  });
}

void OverTransport::barrier(Deadline deadline) {
  guarded([&] {
    // After the round with distance d a rank knows of the 2 d - 1 ranks to its left.
    int round = 0;
    for (int distance = 1; distance < size(); distance *= 2, ++round) {
      const transport::Tag step = tag(Kind::kBarrier, round);
      send((rank() + distance) % size(), step, {}, deadline);
      receive_exactly((rank() + size() - distance) % size(), step, 0, deadline);
    }
  });
}

Bytes OverTransport::receive_exactly(Rank from, transport::Tag tag, std::size_t bytes,
                                     Deadline deadline) {
  Bytes payload = receive(from, tag, deadline);
  if (payload.size() != bytes) {
    throw PeerError("rank " + std::to_string(rank()) + ": rank " + std::to_string(from) + " sent " +
                    std::to_string(payload.size()) + " bytes in a collective operation of " +
                    std::to_string(bytes));
  }
  return payload;
}

}  // namespace cohort::collectives
