#include "report/axis.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace cohort::report {
namespace {

constexpr double kLeastPlain = 1e-4;  // numbers between these two are written without an exponent
constexpr double kMaxPlain = 1e7;

std::string with_decimals(double value, int decimals) {
  std::array<char, 400> digits{};
  const auto end =
      std::to_chars(digits.begin(), digits.end(), value + 0.0, std::chars_format::fixed, decimals)
          .ptr;
  std::string text(digits.data(), end);
  // A value that rounds to zero from below has no sign.
  if (text.find_first_not_of("-0.") == std::string::npos && text[0] == '-') text.erase(0, 1);
  const std::size_t whole = std::min(text.find('.'), text.size());
  const std::size_t first = text[0] == '-' ? 1 : 0;
  if (whole - first > 4) {  // 1000 reads well as it is
    for (std::size_t at = whole; at > first + 3;) text.insert(at -= 3, 1, ',');
  }
  return text;
}

std::string with_exponent(double value, int digits_that_count) {
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), value, std::chars_format::scientific,
                                 digits_that_count - 1)
                       .ptr;
  std::string text(digits.data(), end);
  const std::size_t exponent = text.find('e');
  if (text.find('.') < exponent) {  // 1.50e+08 is 1.5e+08
    std::size_t last = text.find_last_not_of('0', exponent - 1);
    if (text[last] == '.') --last;
    text.erase(last + 1, exponent - last - 1);
  }
  return text;
}

bool is_plain(double magnitude) {
  return magnitude == 0 || (magnitude >= kLeastPlain && magnitude < kMaxPlain);
}

int decimals_of(double step) {
  return std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 300);
}

// The smallest 1, 2 or 5 times a power of ten that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> linear_ticks(const Interval& range, int most_ticks) {
  double step = round_step(range.length() / (most_ticks + 1));
  const double tolerance = 1e-9;
  const auto first = [&] { return std::ceil(range.low / step - tolerance); };
  const auto last = [&] { return std::floor(range.high / step + tolerance); };
  while (last() - first() + 1 > most_ticks) step = round_step(step * 1.5);
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  const bool plain = is_plain(largest) && step >= kLeastPlain / 10;
  // Enough digits to tell neighbours apart, at most what a double holds.
  const int digits_that_count =
      std::clamp(static_cast<int>(std::ceil(std::log10(largest / step) - 1e-9)) + 1, 1, 15);
  std::vector<Tick> ticks;
  for (double index = first(); index <= last(); ++index) {
    const double value = index * step;
    ticks.push_back({value, plain        ? with_decimals(value, decimals_of(step))
                            : value == 0 ? "0"
                                         : with_exponent(value, digits_that_count)});
  }
  return ticks;
}

std::string power_text(double value) {
  return is_plain(value) ? with_decimals(value, value < 1 ? decimals_of(value) : 0)
                         : with_exponent(value, 1);
}

// Those of factors * 10^k, k a multiple of `every`, that lie in the range.
std::vector<Tick> powers(const Interval& range, std::span<const double> factors, int every) {
  std::vector<Tick> ticks;
  const int first = static_cast<int>(std::floor(std::log10(range.low))) - 1;
  const int last = static_cast<int>(std::ceil(std::log10(range.high)));
  for (int exponent = first; exponent <= last; ++exponent) {
    if (exponent % every != 0) continue;
    for (const double factor : factors) {
      const double value = factor * std::pow(10, exponent);
      if (value >= range.low * (1 - 1e-9) && value <= range.high * (1 + 1e-9)) {
        ticks.push_back({value, power_text(value)});
      }
    }
  }
  return ticks;
}

std::vector<Tick> logarithmic_ticks(const Interval& range, int most_ticks) {
  constexpr std::array<double, 3> kFine = {1, 2, 5};
  constexpr std::array<double, 2> kHalf = {1, 3};
  constexpr std::array<double, 1> kWhole = {1};
  std::vector<Tick> ticks = powers(range, kFine, 1);
  if (ticks.size() < 3) return linear_ticks(range, most_ticks);  // hardly any factor between ends
  if (ticks.size() > static_cast<std::size_t>(most_ticks)) ticks = powers(range, kHalf, 1);
  for (int every = 1; ticks.size() > static_cast<std::size_t>(most_ticks); ++every) {
    ticks = powers(range, kWhole, every);
  }
  return ticks;
}

}  // namespace

double Axis::share(double value) const {
  if (scale == Scale::kLinear) return (value - range.low) / range.length();
  // Not of quotients, which may be beyond what a double holds.
  return (std::log(value) - std::log(range.low)) / (std::log(range.high) - std::log(range.low));
}

bool has_place(double value, Scale scale) {
  return std::isfinite(value) && (scale == Scale::kLinear || value > 0);
}

Interval range_of(std::span<const double> values, Scale scale) {
  const bool logarithmic = scale == Scale::kLogarithmic;
  bool found = false;
  Interval range;
  for (const double value : values) {
    if (!has_place(value, scale)) continue;
    range = found ? Interval{std::min(range.low, value), std::max(range.high, value)}
                  : Interval{value, value};
    found = true;
  }
  if (!found) return logarithmic ? Interval{1, 10} : Interval{0, 1};
  // Beyond these, lengths and products of the arithmetic here would overflow.
  const double most = logarithmic ? 1e150 : 1e300;
  range = {std::clamp(range.low, -most, most), std::clamp(range.high, -most, most)};
  if (logarithmic) range = {std::max(range.low, 1 / most), std::max(range.high, 1 / most)};
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  if (logarithmic && range.high / range.low < 1 + 1e-6) return {range.low / 2, range.high * 2};
  const double least = 1 / most;
  if (!logarithmic && range.length() <= std::max(largest * 1e-9, least)) {
    const double room = largest <= least ? 0.5 : largest * 0.05;
    return {range.low - room, range.high + room};
  }
  return range;
}

Interval padded(const Interval& range, double share, Scale scale, const Interval& limits) {
  Interval wider;
  if (scale == Scale::kLogarithmic) {
    const double factor = std::pow(range.high / range.low, share);
    wider = {range.low / factor, range.high * factor};
  } else {
    wider = {range.low - share * range.length(), range.high + share * range.length()};
  }
  if (range.low >= limits.low) wider.low = std::max(wider.low, limits.low);
  if (range.high <= limits.high) wider.high = std::min(wider.high, limits.high);
  // On a logarithmic scale a limit of 0 is no place to begin; at a limit a single value may
  // have lost all its room.
  if (scale == Scale::kLogarithmic && wider.low <= 0) wider.low = range.low;
  return wider.low < wider.high ? wider : range;
}

Axis make_axis(const Interval& range, Scale scale, int most_ticks) {
  COHORT_CHECK(range.low < range.high && most_ticks >= 2, "an axis needs room");
  return {range, scale,
          scale == Scale::kLinear ? linear_ticks(range, most_ticks)
                                  : logarithmic_ticks(range, most_ticks)};
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "not a number" : "infinite";
  const double magnitude = std::abs(value);
  if (!is_plain(magnitude)) return with_exponent(value, 3);
  if (magnitude == 0) return "0";
  const int before = static_cast<int>(std::floor(std::log10(magnitude))) + 1;
  std::string text = with_decimals(value, std::clamp(3 - before, 0, 6));
  if (magnitude < 0.01) text.erase(text.find_last_not_of('0') + 1);  // 0.0001, not 0.000100
  return text;
}

std::string fixed_number(double value, int decimals) {
  if (!std::isfinite(value)) return std::isnan(value) ? "not a number" : "infinite";
  return with_decimals(value, decimals);
}

}  // namespace cohort::report
