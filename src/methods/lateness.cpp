#include "methods/lateness.h"

#include <algorithm>

namespace cohort::methods {
namespace {

double median_without(const std::vector<double>& values, std::size_t excluded) {
  std::vector<double> others;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != excluded) others.push_back(values[i]);
  }
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  return *middle;
}

// The arrivals of `step` in a log sorted by step, or null.
const StepArrivals* find(const std::vector<StepArrivals>& log, Step step) {
  const auto found =
      std::lower_bound(log.begin(), log.end(), step,
                       [](const StepArrivals& each, Step wanted) { return each.step < wanted; });
  return found == log.end() || found->step != step || found->buckets.empty() ? nullptr : &*found;
}

}  // namespace

std::vector<Lateness> find_late(std::span<const std::vector<StepArrivals>> ranks,
                                std::span<const double> clock_offset) {
  std::vector<Lateness> late(ranks.size());
  if (ranks.size() < 2) return late;
  for (const StepArrivals& first : ranks[0]) {
    std::vector<double> ready;
    std::vector<double> data;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const StepArrivals* arrivals = find(ranks[rank], first.step);
      if (arrivals == nullptr) break;
      // A bucket counts when all are there, so the last one is when the rank no longer holds
      // anybody up. Earlier waits are hidden behind backward.
      ready.push_back(arrivals->buckets.back() - (clock_offset.empty() ? 0 : clock_offset[rank]));
      data.push_back(arrivals->data_seconds);
    }
    if (ready.size() != ranks.size()) continue;
    const auto last =
        static_cast<std::size_t>(std::max_element(ready.begin(), ready.end()) - ready.begin());
    const double seconds = ready[last] - median_without(ready, last);
    const double data_excess = data[last] - median_without(data, last);
    late[last].steps_last += 1;
    late[last].seconds += seconds;
    late[last].data_seconds += std::clamp(data_excess, 0.0, seconds);
  }
  return late;
}

}  // namespace cohort::methods
