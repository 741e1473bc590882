#include "report/contenders.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "report/axis.h"

namespace cohort {

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
    Contender contender{evidence.labels[repetition.runs.front()], {}, spread_of(values), 0};
    if (repetition.runs.size() > 1) {
      std::vector<std::string> settings;
      std::size_t at = 0;
      for (const Difference& difference : evidence.differences) {
        if (difference.name == "seed") continue;
        const std::string& value = repetition.values[at++];
        if (!value.empty()) settings.push_back(difference.name + " " + value);
      }
      contender.name = (settings.empty() ? "all runs" : join(settings, ", ")) + ", mean of " +
                       std::to_string(values.size());
    }
    const double of_seeds =
        contender.top1.deviation / std::sqrt(static_cast<double>(values.size()));
    contender.error = std::sqrt(binomial * binomial + of_seeds * of_seeds);
    contender.repetition = std::move(repetition);
    result.push_back(std::move(contender));
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

}  // namespace cohort
