#include "membership/messages.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "network/little_endian.h"

namespace cohort::membership {
namespace {

constexpr std::size_t kLineageAt = 2 * sizeof(std::uint32_t);
constexpr std::size_t kJobAt = kLineageAt + sizeof(std::uint64_t);

}  // namespace

Bytes encode(const JoinRequest& request) {
  Bytes bytes(kJobAt + request.job.size());
  network::put_number(bytes.data(), static_cast<std::uint32_t>(request.conversation));
  network::put_number(bytes.data() + sizeof(std::uint32_t),
                      static_cast<std::uint32_t>(request.kind));
  network::put_number(bytes.data() + kLineageAt, request.lineage);
  std::memcpy(bytes.data() + kJobAt, request.job.data(), request.job.size());
  return bytes;
}

JoinRequest decode_join(std::span<const std::byte> payload) {
  if (payload.size() < kJobAt) throw PeerError("a worker asked to join without a job");
  const auto kind = network::get_number<std::uint32_t>(payload.data() + sizeof(std::uint32_t));
  if (kind > static_cast<std::uint32_t>(JoinKind::kGoBack)) {
    throw PeerError("a worker asked to join in an unknown way");
  }
  const std::span<const std::byte> job = payload.subspan(kJobAt);
  return {
      .conversation = static_cast<Conversation>(network::get_number<std::uint32_t>(payload.data())),
      .kind = static_cast<JoinKind>(kind),
      .lineage = network::get_number<std::uint64_t>(payload.data() + kLineageAt),
      .job = {reinterpret_cast<const char*>(job.data()), job.size()}};
}

Bytes encode_joined(std::uint64_t lineage, std::span<const std::byte> rest) {
  Bytes bytes(sizeof lineage + rest.size());
  network::put_number(bytes.data(), lineage);
  std::copy(rest.begin(), rest.end(), bytes.begin() + sizeof lineage);
  return bytes;
}

std::span<const std::byte> joined_rest(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(std::uint64_t)) {
    throw PeerError("the answer to a join has only " + std::to_string(payload.size()) + " bytes");
  }
  return payload.subspan(sizeof(std::uint64_t));
}

std::uint64_t joined_lineage(std::span<const std::byte> payload) {
  joined_rest(payload);
  return network::get_number<std::uint64_t>(payload.data());
}

LeaveKind decode_leave(Rank worker, const network::FrameHeader& header) {
  if (header.detail > static_cast<std::uint32_t>(LeaveKind::kFailed)) {
    throw PeerError(named(worker) + " left in an unknown way");
  }
  return static_cast<LeaveKind>(header.detail);
}

}  // namespace cohort::membership
