#include "methods/replica_comparison.h"

#include <cstring>
#include <map>
#include <vector>

#include "core/error.h"
#include "methods/bucket_exchange.h"
#include "methods/shared_settings.h"

namespace cohort::methods {
namespace {

// Eight independent lanes, so that the multiplications overlap; each is FNV-1a over 8-byte words
// with a final mix. Not against an adversary, only against chance.
std::uint64_t hash_bytes(const std::byte* data, std::size_t size, std::uint64_t seed) {
  constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15;
  constexpr std::size_t kLanes = 8;
  std::uint64_t lanes[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = seed + lane * kPrime;
  const auto mix = [](std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * kPrime;
    return state ^ (state >> 29);
  };
  std::size_t at = 0;
  for (; at + kLanes * 8 <= size; at += kLanes * 8) {
    std::uint64_t words[kLanes];
    std::memcpy(words, data + at, sizeof words);
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = mix(lanes[lane], words[lane]);
  }
  std::uint64_t result = seed ^ size;
  for (; at < size; ++at) result = mix(result, static_cast<std::uint64_t>(data[at]));
  for (const std::uint64_t lane : lanes) result = mix(result, lane);
  return result;
}

std::uint64_t hash_text(const std::string& text, std::uint64_t seed) {
  return hash_bytes(reinterpret_cast<const std::byte*>(text.data()), text.size(), seed);
}

std::vector<std::vector<std::uint64_t>> gather(collectives::Collectives& collectives,
                                               std::span<const std::uint64_t> own,
                                               Deadline deadline) {
  std::vector<std::vector<std::uint64_t>> all;
  for (const Bytes& bytes : collectives.all_gather(std::as_bytes(own), deadline)) {
    std::vector<std::uint64_t> values(bytes.size() / sizeof(std::uint64_t));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(std::uint64_t));
    all.push_back(std::move(values));
  }
  return all;
}

// The first rank that does not have what most have (what rank 0 has, when no value leads).
Rank odd_one_out(const std::vector<std::vector<std::uint64_t>>& all) {
  std::map<std::vector<std::uint64_t>, int> votes;
  for (const auto& each : all) ++votes[each];
  const std::vector<std::uint64_t>* common = &all[0];
  for (const auto& [value, count] : votes) {
    if (count > votes[*common]) common = &value;
  }
  for (Rank rank = 0; rank < static_cast<Rank>(all.size()); ++rank) {
    if (all[static_cast<std::size_t>(rank)] != *common) return rank;
  }
  return -1;
}

class Broadcaster final : public StateVisitor {
 public:
  Broadcaster(collectives::Collectives& collectives, Deadline deadline)
      : collectives_(collectives), deadline_(deadline) {}
  void tensor(const std::string&, const at::Tensor& value) override {
    broadcast_from(collectives_, 0, value, deadline_);
  }
  void number(const std::string&, std::int64_t& value) override {
    collectives_.broadcast(std::as_writable_bytes(std::span(&value, 1)), 0, deadline_);
  }

 private:
  collectives::Collectives& collectives_;
  Deadline deadline_;
};

}  // namespace

void compare_replicas(const Replica& replica, collectives::Collectives& collectives, Step step,
                      Deadline deadline) {
  const at::Tensor values = replica.parameters().cpu();
  const auto* bytes = static_cast<const std::byte*>(values.data_ptr());
  const std::uint64_t whole[] = {hash_bytes(bytes, values.nbytes(), 1)};
  if (odd_one_out(gather(collectives, whole, deadline)) < 0) return;

  std::vector<std::uint64_t> parts;
  for (const Replica::Segment& segment : replica.segments()) {
    parts.push_back(hash_bytes(bytes + segment.range.begin * sizeof(float),
                               static_cast<std::size_t>(segment.range.size) * sizeof(float), 1));
  }
  const auto all = gather(collectives, parts, deadline);
  const Rank odd = odd_one_out(all);
  std::string where = "somewhere";
  const std::size_t other = odd == 0 ? 1 : 0;
  // In the model's own order, which is the reverse of the arena's.
  for (std::size_t i = parts.size(); odd >= 0 && i-- > 0;) {
    if (all[static_cast<std::size_t>(odd)][i] == all[other][i]) continue;
    where = replica.segments()[i].name;
    break;
  }
  throw RunError("the replicas are no longer equal after step " + std::to_string(step) + ": rank " +
                 std::to_string(odd) + " differs, first in " + where +
                 ". Memory of that machine may be faulty; go on from the last checkpoint with "
                 "--resume");
}

void compare_when_due(const Replica& replica, const MethodOptions& options, Step step) {
  const Step every = steps_between_comparisons(options.own);
  if (every == 0 || (step + 1) % every != 0) return;
  compare_replicas(replica, *options.control, step, deadline_in(options.patience));
}

void require_same_model(const Replica& replica, collectives::Collectives& collectives,
                        Deadline deadline) {
  std::uint64_t hash = 1;
  for (const Replica::Segment& segment : replica.segments()) {
    hash = hash_text(segment.name, hash);
    for (const std::int64_t size : segment.shape) hash = hash_text(std::to_string(size), hash);
    for (const std::int64_t stride : segment.strides)
      hash = hash_text(std::to_string(stride), hash);
  }
  const std::uint64_t own[] = {hash, static_cast<std::uint64_t>(replica.numel()),
                               static_cast<std::uint64_t>(replica.slots().size())};
  const Rank odd = odd_one_out(gather(collectives, own, deadline));
  if (odd < 0) return;
  throw ConfigError("rank " + std::to_string(odd) +
                    " has another model than the others: start all ranks with the same command and "
                    "the same version of the program");
}

void copy_from_first_rank(Replica& replica, collectives::Collectives& collectives,
                          Deadline deadline) {
  Broadcaster broadcaster(collectives, deadline);
  replica.visit_model(broadcaster);
  replica.visit_state(broadcaster);
}

}  // namespace cohort::methods
