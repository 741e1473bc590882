// From values to places: ranges, scales and the numbers written along them. Pure arithmetic.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace cohort::report {

struct Interval {
  double low = 0;
  double high = 0;

  double length() const { return high - low; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

enum class Scale { kLinear, kLogarithmic };

struct Tick {
  double value = 0;
  std::string text;
};

// One direction of a panel. range.low < range.high, both finite; on a logarithmic scale both are
// above 0.
struct Axis {
  Interval range;
  Scale scale = Scale::kLinear;
  std::vector<Tick> ticks;  // ascending, within the range

  // 0 at range.low, 1 at range.high; in proportion between and beyond.
  double share(double value) const;
};

// Whether the scale has a place for the value: finite, and above 0 on a logarithmic one.
bool has_place(double value, Scale scale);

// The smallest range that holds all values that have a place. {0, 1} when none has one ({1, 10} on
// a logarithmic scale); a single value gets room around it.
Interval range_of(std::span<const double> values, Scale scale);

// `range` made longer by `share` of its length at both ends, but not beyond `limits` (those of the
// two ends that were within them).
Interval padded(const Interval& range, double share, Scale scale, const Interval& limits);

// An axis over `range` with at most `most_ticks` (at least 2) round numbers: 1, 2 or 5 times a
// power of ten apart; on a logarithmic scale powers of ten, or 1 and 3, or 1, 2 and 5 times these.
Axis make_axis(const Interval& range, Scale scale, int most_ticks);

// `value` with about three digits that count, for people: 87.3, 0.355, 12,400, 1.2e-07.
std::string short_number(double value);

// With that many decimals and commas between thousands: 98.70, 12,400.
std::string fixed_number(double value, int decimals);

}  // namespace cohort::report
