#include "server/messages.h"

#include "core/error.h"
#include "server/numbers.h"

namespace cohort::server {
namespace {

constexpr std::size_t kJoinedBytes = 5 * sizeof(std::uint64_t) + 3;

bool flag_of(std::byte byte) {
  if (byte > std::byte{1}) throw PeerError("the answer to a join holds a flag that is none");
  return byte == std::byte{1};
}

}  // namespace

Bytes encode(const JoinedBody& body) {
  Bytes bytes(kJoinedBytes);
  std::size_t at = 0;
  for (const std::uint64_t value :
       {body.applied, body.durable, body.version, body.progress, body.applied_before}) {
    put_u64(std::span(bytes).subspan(at), value);
    at += sizeof value;
  }
  bytes[at] = std::byte{body.initialized};
  bytes[at + 1] = std::byte{body.keeps_state};
  bytes[at + 2] = std::byte{body.in_model_before};
  return bytes;
}

JoinedBody decode_joined(std::span<const std::byte> payload) {
  if (payload.size() != kJoinedBytes) {
    throw PeerError("the answer to a join has " + std::to_string(payload.size()) +
                    " bytes instead of " + std::to_string(kJoinedBytes));
  }
  const auto number = [&](std::size_t index) { return get_u64(payload.subspan(8 * index)); };
  return {.applied = number(0),
          .durable = number(1),
          .version = number(2),
          .progress = number(3),
          .initialized = flag_of(payload[kJoinedBytes - 3]),
          .keeps_state = flag_of(payload[kJoinedBytes - 2]),
          .applied_before = number(4),
          .in_model_before = flag_of(payload[kJoinedBytes - 1])};
}

Bytes encode_counts(std::span<const std::uint64_t> counts) {
  Bytes bytes(counts.size() * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < counts.size(); ++i)
    put_u64(std::span(bytes).subspan(8 * i), counts[i]);
  return bytes;
}

std::vector<std::uint64_t> decode_counts(std::span<const std::byte> payload) {
  if (payload.size() % sizeof(std::uint64_t) != 0) {
    throw PeerError("a list of counts has " + std::to_string(payload.size()) + " bytes");
  }
  std::vector<std::uint64_t> counts;
  for (std::size_t at = 0; at < payload.size(); at += sizeof(std::uint64_t)) {
    counts.push_back(get_u64(payload.subspan(at)));
  }
  return counts;
}

Bytes encode_workers(const std::vector<Rank>& workers, int of) {
  Bytes bits((static_cast<std::size_t>(of) + 7) / 8);
  for (const Rank worker : workers) {
    COHORT_CHECK(worker >= 0 && worker < of, "a worker of this job");
    bits[static_cast<std::size_t>(worker) / 8] |= std::byte{1} << (worker % 8);
  }
  return bits;
}

std::vector<Rank> decode_workers(std::span<const std::byte> payload, int of) {
  if (payload.size() != (static_cast<std::size_t>(of) + 7) / 8) {
    throw PeerError("a set of workers has " + std::to_string(payload.size()) + " bytes for " +
                    std::to_string(of) + " workers");
  }
  std::vector<Rank> workers;
  for (Rank worker = 0; worker < static_cast<Rank>(payload.size() * 8); ++worker) {
    const std::byte bit = std::byte{1} << (worker % 8);
    if ((payload[static_cast<std::size_t>(worker) / 8] & bit) == std::byte{0}) continue;
    if (worker >= of) throw PeerError("a set of workers names one that the job has not");
    workers.push_back(worker);
  }
  return workers;
}

}  // namespace cohort::server
