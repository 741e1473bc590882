#include "server/replay_window.h"

#include <algorithm>
#include <utility>

namespace cohort::server {

void ReplayWindow::add(std::uint64_t sequence, std::uint64_t base,
                       const ArenaView<const float>& gradients, std::vector<Rank> workers) {
  Entry entry{.sequence = sequence,
              .base = base,
              .gradients = {},
              .workers = std::move(workers),
              .refused = false};
  if (!spare_.empty()) {
    entry.gradients = std::move(spare_.back());
    spare_.pop_back();
  }
  entry.gradients.clear();
  while (entry.gradients.size() < gradients.size()) {
    const auto part = gradients.at(entry.gradients.size(), gradients.size());
    entry.gradients.insert(entry.gradients.end(), part.begin(), part.end());
  }
  bytes_ += gradients.size_bytes();
  entries_.push_back(std::move(entry));
}

void ReplayWindow::add_refused(std::uint64_t sequence) {
  entries_.push_back(
      {.sequence = sequence, .base = 0, .gradients = {}, .workers = {}, .refused = true});
}

bool ReplayWindow::trim(std::uint64_t durable) {
  bool any = false;
  while (!entries_.empty() && entries_.front().sequence <= durable) {
    Entry& entry = entries_.front();
    bytes_ -= entry.gradients.size() * sizeof(float);
    if (!entry.gradients.empty() && spare_.empty()) spare_.push_back(std::move(entry.gradients));
    entries_.pop_front();
    any = true;
  }
  return any;
}

ReplayWindow::Entry* ReplayWindow::after(std::uint64_t sequence) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.sequence > sequence; });
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace cohort::server
