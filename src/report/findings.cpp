#include "report/findings.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace cohort::report {
namespace {

constexpr double kShockFactor = 1.5;
constexpr double kShockSigmas = 3;
constexpr double kSigmaOfMedian = 1.4826;  // of a normal distribution's absolute deviation
// Of the logarithm: below 2 %, two scores of a hardly changing model differ by less than matters.
constexpr double kLeastSigma = 0.02;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<Shock> find_shocks(std::span<const Point> losses) {
  std::vector<Point> points;
  for (const Point& point : losses) {
    if (std::isfinite(point.y) && point.y > 0) points.push_back(point);
  }
  if (points.size() < kLeastPoints) return {};
  std::vector<double> changes;
  for (std::size_t i = 1; i < points.size(); ++i) {
    changes.push_back(std::log(points[i].y) - std::log(points[i - 1].y));
  }
  const double jump = std::log(kShockFactor);
  std::vector<double> small;
  std::copy_if(changes.begin(), changes.end(), std::back_inserter(small),
               [jump](double change) { return std::abs(change) <= jump; });
  const double usual = median(small);
  std::vector<double> distances;
  distances.reserve(small.size());
  for (const double change : small) distances.push_back(std::abs(change - usual));
  const double sigma = std::max(kSigmaOfMedian * median(distances), kLeastSigma);
  std::vector<Shock> shocks;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (changes[i] > jump && changes[i] - usual > kShockSigmas * sigma) {
      shocks.push_back({points[i + 1].x, points[i].y, points[i + 1].y});
    }
  }
  return shocks;
}

std::optional<Freeze> find_freeze(const DumpScores& scores, double end_seconds) {
  constexpr int kLeastLater = 3;
  if (scores.server.empty() || !(end_seconds > 0)) return std::nullopt;
  const ScoredDump& last = scores.server.back();
  Freeze freeze{last.score.seconds, end_seconds, last.name.version, last.score.loss, {}};
  if (freeze.share() >= kFreezeShare) return std::nullopt;
  int later = 0;
  for (const auto& [rank, dumps] : scores.workers) {
    for (const ScoredDump& dump : dumps) {
      if (dump.score.seconds <= freeze.last_seconds) continue;
      ++later;
      if (!std::isfinite(dump.score.loss)) continue;
      freeze.best_later_loss =
          std::min(freeze.best_later_loss.value_or(dump.score.loss), dump.score.loss);
    }
  }
  return later < kLeastLater ? std::nullopt : std::optional(freeze);
}

double binomial_standard_error(double share, std::int64_t samples) {
  if (samples <= 0) return 0;
  const double inside = std::clamp(share, 0.0, 1.0);
  return std::sqrt(inside * (1 - inside) / static_cast<double>(samples));
}

Spread spread_of(std::span<const double> values) {
  Spread spread{0, 0, values.size()};
  if (values.empty()) return spread;
  for (const double value : values) spread.mean += value;
  spread.mean /= static_cast<double>(values.size());
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return spread;
}

}  // namespace cohort::report
