#include "engine/worker_group.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"

namespace cohort::engine {

bool WorkerGroup::any(bool mine) const {
  if (alone()) return mine;
  float votes = mine ? 1 : 0;
  control_->all_reduce({&votes, 1}, deadline());
  return votes > 0;
}

int WorkerGroup::place() const {
  int before = 0;
  for (Rank other = 0; other < rank(); ++other) before += is_present(other) ? 1 : 0;
  return before;
}

collectives::ElasticCollectives::Agreement WorkerGroup::agree(bool mine,
                                                              std::int64_t number) const {
  if (alone()) return {mine, number};
  if (elastic_ != nullptr) return elastic_->agree(mine, number, deadline());
  float values[] = {mine ? 1.0F : 0.0F, is_first() ? static_cast<float>(number) : 0.0F};
  control_->all_reduce(values, deadline());
  return {values[0] > 0, static_cast<std::int64_t>(values[1])};
}

std::vector<std::string> WorkerGroup::gather(const std::string& mine) const {
  if (alone()) return {mine};
  std::vector<std::string> all;
  for (const Bytes& bytes : control_->all_gather(std::as_bytes(std::span(mine)), deadline())) {
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return all;
}

void WorkerGroup::sum(std::span<float> values) const {
  if (!alone()) control_->all_reduce(values, deadline());
}

std::vector<double> WorkerGroup::clock_offsets() const {
  constexpr int kRounds = 5;
  constexpr double kNoise = 0.002;  // seconds: leaving a barrier is not sharper than this
  std::vector<double> offsets(static_cast<std::size_t>(size()), 0.0);
  if (alone()) return offsets;
  std::vector<std::vector<double>> seen(offsets.size());
  for (int round = 0; round < kRounds; ++round) {
    control_->barrier(deadline());
    const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    const std::string mine(reinterpret_cast<const char*>(&now), sizeof now);
    const std::vector<std::string> all = gather(mine);
    double first = 0;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].empty() && !is_present(static_cast<Rank>(rank))) {
        seen[rank].push_back(0);
        continue;
      }
      if (all[rank].size() != sizeof(double)) throw PeerError("a worker sent no time");
      double theirs = 0;
      std::memcpy(&theirs, all[rank].data(), sizeof theirs);
      if (rank == 0) first = theirs;
      seen[rank].push_back(theirs - first);
    }
  }
  for (std::size_t rank = 0; rank < offsets.size(); ++rank) {
    std::nth_element(seen[rank].begin(), seen[rank].begin() + kRounds / 2, seen[rank].end());
    const double median = seen[rank][kRounds / 2];
    offsets[rank] = std::abs(median) < kNoise ? 0 : median;
  }
  return offsets;
}

}  // namespace cohort::engine
