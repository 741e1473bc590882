#include "data/partition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "core/text.h"

namespace cohort::data {
namespace {

using Parts = std::vector<std::vector<std::int64_t>>;

std::vector<std::int64_t> all_indices(std::size_t count) {
  std::vector<std::int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

Parts equal_parts(const std::vector<std::int64_t>& order, int workers) {
  Parts parts;
  const auto count = static_cast<std::int64_t>(order.size());
  for (std::int64_t w = 0; w < workers; ++w) {
    parts.emplace_back(order.begin() + w * count / workers,
                       order.begin() + (w + 1) * count / workers);
  }
  return parts;
}

std::vector<double> draw_dirichlet(double alpha, int workers, RandomStream& random) {
  std::vector<double> shares(static_cast<std::size_t>(workers));
  double total = 0;
  for (double& share : shares) total += share = random.gamma(alpha);
  if (!(total > 0) || !std::isfinite(total)) {
    // With a tiny alpha every draw underflows; the limit is one worker that takes all.
    std::fill(shares.begin(), shares.end(), 0.0);
    shares[random.below(shares.size())] = 1.0;
    total = 1.0;
  }
  for (double& share : shares) share /= total;
  return shares;
}

void feed_empty_parts(Parts& parts) {
  for (std::vector<std::int64_t>& part : parts) {
    if (!part.empty()) continue;
    auto largest = std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
      return a.size() < b.size();
    });
    part.push_back(largest->back());
    largest->pop_back();
  }
}

Parts dirichlet_parts(std::span<const std::int64_t> labels, int workers, double alpha, Seed seed) {
  std::map<std::int64_t, std::vector<std::int64_t>> classes;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    classes[labels[i]].push_back(static_cast<std::int64_t>(i));
  }
  Parts parts(static_cast<std::size_t>(workers));
  for (auto& [label, members] : classes) {
    RandomStream random(seed, "partition", {static_cast<std::uint64_t>(label)});
    shuffle(std::span(members), random);
    const std::vector<double> shares = draw_dirichlet(alpha, workers, random);
    const auto count = static_cast<double>(members.size());
    double upto = 0;
    std::size_t begin = 0;
    for (std::size_t w = 0; w < parts.size(); ++w) {
      upto += shares[w];
      const bool last = w + 1 == parts.size();
      const std::size_t end = last
                                  ? members.size()
                                  : std::clamp(static_cast<std::size_t>(std::llround(upto * count)),
                                               begin, members.size());
      parts[w].insert(parts[w].end(), members.begin() + static_cast<std::ptrdiff_t>(begin),
                      members.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
  }
  feed_empty_parts(parts);
  for (std::vector<std::int64_t>& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

}  // namespace

const std::vector<std::string>& partition_names() {
  static const std::vector<std::string> names = {"none", "random", "sorted", "dirichlet"};
  return names;
}

PartitionKind partition_kind(std::string_view name) {
  const std::vector<std::string>& names = partition_names();
  const auto place = std::find(names.begin(), names.end(), name);
  if (place == names.end()) throw ConfigError(unknown_name("partition", name, names));
  return static_cast<PartitionKind>(place - names.begin());
}

std::vector<std::vector<std::int64_t>> partition(PartitionKind kind,
                                                 std::span<const std::int64_t> labels, int workers,
                                                 double alpha, Seed seed) {
  if (workers < 1) throw ConfigError("a partition needs at least one worker");
  std::vector<std::int64_t> order = all_indices(labels.size());
  if (kind == PartitionKind::kNone) return Parts(static_cast<std::size_t>(workers), order);
  if (labels.size() < static_cast<std::size_t>(workers)) {
    throw ConfigError(std::to_string(labels.size()) + " samples cannot be divided over " +
                      std::to_string(workers) + " workers; use fewer workers or more data");
  }
  switch (kind) {
    case PartitionKind::kRandom: {
      RandomStream random(seed, "partition");
      shuffle(std::span(order), random);
      return equal_parts(order, workers);
    }
    case PartitionKind::kSorted:
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return labels[static_cast<std::size_t>(a)] < labels[static_cast<std::size_t>(b)];
      });
      return equal_parts(order, workers);
    default:
      if (!(alpha > 0) || !std::isfinite(alpha)) {
        throw ConfigError("the Dirichlet partition needs a positive alpha, for instance 0.5");
      }
      return dirichlet_parts(labels, workers, alpha, seed);
  }
}

}  // namespace cohort::data
