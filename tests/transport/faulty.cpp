#include "transport/faulty.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"

namespace cohort::transport {
namespace {

FaultPlan validated(FaultPlan plan) {
  for (const double probability : {plan.drop_probability, plan.delay_probability}) {
    if (!(probability >= 0 && probability <= 1)) {
      throw ConfigError("a fault's probability must be from 0 to 1, not " +
                        std::to_string(probability));
    }
  }
  if (plan.delay.count() < 0) throw ConfigError("a fault's delay must not be negative");
  if (plan.close_after.value_or(0) < 0) {
    throw ConfigError("a transport cannot close after a negative number of messages");
  }
  return plan;
}

}  // namespace

FaultyTransport::FaultyTransport(std::unique_ptr<Transport> inner, FaultPlan plan)
    : Transport(inner->rank(), inner->size()),
      inner_(std::move(inner)),
      plan_(validated(plan)),
      random_(plan.seed, "faulty-transport", {static_cast<std::uint64_t>(rank())}) {}

void FaultyTransport::send(Rank to, Tag tag, std::span<const std::byte> payload,
                           Deadline deadline) {
  bool drop = false;
  bool delay = false;
  bool die = false;
  {
    const std::lock_guard lock(mutex_);
    // Both are drawn every time: changing one probability leaves the other's pattern as it was.
    drop = random_.uniform() < plan_.drop_probability;
    delay = random_.uniform() < plan_.delay_probability;
    die = closed_ || (plan_.close_after && sends_ >= *plan_.close_after);
    ++sends_;
  }
  if (die) close();  // and let the closed transport beneath refuse the message
  if (delay) wait(std::min(deadline, deadline_in(plan_.delay)));
  if (!drop || die) inner_->send(to, tag, payload, deadline);
}

void FaultyTransport::wait(Deadline until) {
  std::unique_lock lock(mutex_);
  closed_changed_.wait_until(lock, until, [this] { return closed_; });
}

void FaultyTransport::close() {
  inner_->close();  // first, so that a send that was delayed till now is refused
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  closed_changed_.notify_all();
}

}  // namespace cohort::transport
