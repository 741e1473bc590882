#include "report/contenders.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "report/axis.h"

namespace cohort::report {

std::string percent(double share) { return fixed_number(100 * share, 2) + "%"; }

// "a", "a and b", "a, b and c".
std::string listed(std::vector<std::string> parts) {
  if (parts.size() < 2) return join(parts, "");
  const std::string last = parts.back();
  parts.pop_back();
  return join(parts, ", ") + " and " + last;
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string percent(const Spread& spread) {
  if (spread.count < 2) return percent(spread.mean);
  return fixed_number(100 * spread.mean, 2) + " ± " + fixed_number(100 * spread.deviation, 2) + "%";
}

double deviation_of_seeds(const std::vector<Contender>& contenders) {
  double squares = 0;
  double degrees = 0;
  for (const Contender& each : contenders) {
    if (each.top1.count < 2) continue;
    const auto own = static_cast<double>(each.top1.count - 1);
    squares += own * each.top1.deviation * each.top1.deviation;
    degrees += own;
  }
  return degrees > 0 ? std::sqrt(squares / degrees) : 0;
}

std::string name_of(const Repetition& repetition, const Evidence& evidence) {
  if (repetition.runs.size() == 1) return evidence.labels[repetition.runs.front()];
  std::vector<std::string> settings;
  std::size_t at = 0;
  for (const Difference& difference : evidence.differences) {
    if (difference.name == "seed") continue;
    const std::string& value = repetition.values[at++];
    if (!value.empty()) settings.push_back(difference.name + " " + value);
  }
  return (settings.empty() ? "all runs" : join(settings, ", ")) + ", mean of " +
         std::to_string(repetition.runs.size());
}

std::vector<Contender> contenders_of(const Evidence& evidence) {
  std::vector<Contender> result;
  for (Repetition& repetition : repetitions(evidence.runs.size(), evidence.differences)) {
    std::vector<double> values;
    double binomial = 0;
    for (const std::size_t run : repetition.runs) {
      const RunResult& each = evidence.results[run];
      if (!each.top1()) continue;
      values.push_back(*each.top1());
      binomial = std::max(binomial, binomial_standard_error(*each.top1(), each.test_samples));
    }
    if (values.empty()) continue;
    Contender contender{name_of(repetition, evidence), {}, spread_of(values), 0};
    contender.error = binomial;
    contender.repetition = std::move(repetition);
    result.push_back(std::move(contender));
  }
  // A setting that was run once may be as lucky as the luckiest seed of another.
  const double usual = deviation_of_seeds(result);
  for (Contender& each : result) {
    const double deviation = each.top1.count > 1 ? each.top1.deviation : usual;
    each.error =
        std::hypot(each.error, deviation / std::sqrt(static_cast<double>(each.top1.count)));
  }
  std::stable_sort(result.begin(), result.end(), [](const Contender& a, const Contender& b) {
    return a.top1.mean > b.top1.mean;
  });
  return result;
}

double error_of_difference(const Contender& a, const Contender& b) {
  return std::sqrt(a.error * a.error + b.error * b.error);
}

bool significantly_above(const Contender& a, const Contender& b) {
  constexpr double kSignificant = 2;  // standard errors
  return a.top1.mean - b.top1.mean > kSignificant * error_of_difference(a, b);
}

}  // namespace cohort::report
