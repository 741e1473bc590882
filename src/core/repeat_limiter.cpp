#include "core/repeat_limiter.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace cohort {
namespace {

constexpr int kMaxInAPeriod = 60;
constexpr std::chrono::minutes kPeriod{1};
constexpr std::size_t kMaxKinds = 1000;  // of lines that are remembered

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

std::string without_numbers(const std::string& line) {
  std::string kind = line;
  kind.erase(std::remove_if(kind.begin(), kind.end(), is_digit), kind.end());
  return kind;
}

}  // namespace

std::optional<std::string> RepeatLimiter::admit(const std::string& line, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (seen_.size() >= kMaxKinds) seen_.clear();
  const auto [place, first] = seen_.try_emplace(without_numbers(line));
  Seen& seen = place->second;
  if (first || now - seen.since >= kPeriod) {
    seen.since = now;
    seen.said = 0;
  }
  if (seen.said == kMaxInAPeriod) {
    ++seen.left_out;
    return std::nullopt;
  }
  ++seen.said;
  const std::uint64_t left_out = std::exchange(seen.left_out, 0);
  if (left_out == 0) return line;
  return line + " (and " + std::to_string(left_out) + " lines like it before)";
}

std::function<void(const std::string&)> limit_repeats(std::function<void(const std::string&)> say) {
  return
      [limiter = std::make_shared<RepeatLimiter>(), say = std::move(say)](const std::string& line) {
        if (const auto admitted = limiter->admit(line, Clock::now())) say(*admitted);
      };
}

}  // namespace cohort
