// For how many workers a graph exists, and what to say where it does not.
#pragma once

#include <string>
#include <string_view>

namespace cohort::topology {

inline constexpr int kMaxWorkers = 1 << 16;

// Throws ConfigError unless 1 <= size <= kMaxWorkers.
void check_size(int size);

// The same, and unless exists(size): "torus needs <what>: 7 or 11, not 8", with the nearest numbers
// below and above for which it does exist.
void check_size(int size, std::string_view needs, bool (*exists)(int));

// "7 or 11": the nearest sizes below and above for which it exists, of those that are permitted.
std::string nearest_sizes(int size, bool (*exists)(int));

bool is_prime(int number);
bool is_square(int number);
bool is_power_of_two(int number);

// The largest r with r * r <= number; number >= 0.
int square_root(int number);

}  // namespace cohort::topology
