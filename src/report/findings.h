// What stands out in the course of a run, found by arithmetic alone. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "report/canvas.h"
#include "report/dump_scores.h"

namespace cohort::report {

// A model that was suddenly worse than the one before it.
struct Shock {
  double seconds = 0;  // when the worse one was seen
  double before = 0;   // loss
  double after = 0;
};

// Where a loss (x: seconds, y: loss) jumps up between two points in a row by more than half, and by
// more than three robust standard deviations of its usual change from point to point (of
// logarithms). Usual are the changes by less than half, so that any number of shocks and recoveries
// leaves the measure as it is. Losses that are not finite are left out. Fewer than kLeastPoints
// points have no shocks.
std::vector<Shock> find_shocks(std::span<const Point> losses);

inline constexpr std::size_t kLeastPoints = 6;

// A server whose model stayed the same although training went on.
struct Freeze {
  double last_seconds = 0;  // when its last version came
  double end_seconds = 0;   // until when workers trained
  std::int64_t version = 0;
  double loss = 0;                          // of that version
  std::optional<double> best_later_loss{};  // of any worker's model after it; absent: none finite

  double share() const { return last_seconds / end_seconds; }
};

// Found when the last version came before 60 % of the time until `end_seconds` and workers dumped
// at least three models after it. Whether it should have gone on, best_later_loss tells.
std::optional<Freeze> find_freeze(const DumpScores& scores, double end_seconds);

inline constexpr double kFreezeShare = 0.6;

// Of a share measured on so many samples: sqrt(share (1 - share) / samples). 0 when there are none.
double binomial_standard_error(double share, std::int64_t samples);

// Of several values; a deviation is 0 for fewer than two.
struct Spread {
  double mean = 0;
  double deviation = 0;  // of the sample, n - 1
  std::size_t count = 0;
};
Spread spread_of(std::span<const double> values);

}  // namespace cohort::report
