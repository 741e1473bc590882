// A server's arena as it lies in a worker's memory: in stretches, in the order of the server's, of
// a vector that has them in another. What it shows outlives it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace cohort::server {

template <class T>
class ArenaView {
 public:
  ArenaView() = default;

  // All in one place. Implicit: a vector is one.
  template <class Values>
  requires(std::constructible_from<std::span<T>, Values&&> &&
           !std::same_as<std::remove_cvref_t<Values>, ArenaView>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      ArenaView(Values&& values) {
    append(std::span<T>(std::forward<Values>(values)));
  }

  void append(std::span<T> stretch) {
    if (stretch.empty()) return;
    const bool continues =
        !stretches_.empty() &&
        stretches_.back().values.data() + stretches_.back().values.size() == stretch.data();
    if (continues) {
      Stretch& last = stretches_.back();
      last.values = {last.values.data(), last.values.size() + stretch.size()};
    } else {
      stretches_.push_back({size_, stretch});
    }
    size_ += stretch.size();
  }

  std::size_t size() const { return size_; }
  std::size_t size_bytes() const { return size_ * sizeof(T); }

  // The elements from `place` on, as far as they lie together, at most `count`. Empty only at the
  // end, or where `count` is 0.
  std::span<T> at(std::size_t place, std::size_t count) const {
    if (place >= size_) return {};
    const auto next = std::upper_bound(
        stretches_.begin(), stretches_.end(), place,
        [](std::size_t wanted, const Stretch& stretch) { return wanted < stretch.place; });
    const Stretch& stretch = *std::prev(next);
    const std::span<T> rest = stretch.values.subspan(place - stretch.place);
    return rest.first(std::min(count, rest.size()));
  }

 private:
  struct Stretch {
    std::size_t place = 0;  // of its first element
    std::span<T> values;
  };

  std::vector<Stretch> stretches_;
  std::size_t size_ = 0;
};

}  // namespace cohort::server
