#include "topology/sizes.h"

#include <string>

#include "core/error.h"

namespace cohort::topology {

void check_size(int size) {
  if (size >= 1 && size <= kMaxWorkers) return;
  throw ConfigError("a topology needs 1 to " + std::to_string(kMaxWorkers) + " workers, not " +
                    std::to_string(size));
}

std::string nearest_sizes(int size, bool (*exists)(int)) {
  int below = size - 1;
  while (below >= 1 && !exists(below)) --below;
  int above = size + 1;
  while (above <= kMaxWorkers && !exists(above)) ++above;
  std::string nearest = below >= 1 ? std::to_string(below) : "";
  if (above <= kMaxWorkers) nearest += (nearest.empty() ? "" : " or ") + std::to_string(above);
  return nearest;
}

void check_size(int size, std::string_view needs, bool (*exists)(int)) {
  check_size(size);
  if (exists(size)) return;
  throw ConfigError(std::string(needs) + ": " + nearest_sizes(size, exists) + ", not " +
                    std::to_string(size));
}

int square_root(int number) {
  int root = 0;
  while ((root + 1) * (root + 1) <= number) ++root;
  return root;
}

bool is_prime(int number) {
  if (number < 2) return false;
  for (int divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return true;
}

bool is_square(int number) {
  const int root = square_root(number);
  return root * root == number;
}

bool is_power_of_two(int number) { return number >= 1 && (number & (number - 1)) == 0; }

}  // namespace cohort::topology
