// What happened, as a number that is equal only for equal schedules, and as text when asked for.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "simulation/virtual_time.h"

namespace cohort::simulation {

class Trace {
 public:
  // `out`: where lines go, null: nowhere.
  explicit Trace(std::FILE* out) : out_(out) {}

  bool wanted() const { return out_ != nullptr; }
  void mix(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15;
    hash_ ^= hash_ >> 29;
  }
  // Only when wanted(): making the text costs more than the event.
  void line(Time now, const std::string& text) const {
    std::fprintf(out_, "%10.3f ms  %s\n", static_cast<double>(now) / kMillisecond, text.c_str());
  }
  std::uint64_t hash() const { return hash_; }

 private:
  std::FILE* out_;
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace cohort::simulation
