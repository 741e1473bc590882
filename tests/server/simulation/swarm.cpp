#include "simulation/swarm.h"

#include <sstream>

#include "core/random.h"

namespace cohort::server::simulation {
namespace {

cohort::simulation::Time between(RandomStream& random, cohort::simulation::Time low,
                                 cohort::simulation::Time high) {
  return low + static_cast<cohort::simulation::Time>(
                   random.below(static_cast<std::uint64_t>(high - low + 1)));
}

bool one_in(RandomStream& random, std::uint64_t n) { return random.below(n) == 0; }

// Spread over orders of magnitude, so that both haste and leisure are common.
cohort::simulation::Time scaled(RandomStream& random, cohort::simulation::Time low, int doublings) {
  const cohort::simulation::Time base = low << random.below(static_cast<std::uint64_t>(doublings));
  return between(random, base, 2 * base);
}

void draw_faults(RandomStream& random, Swarm& swarm) {
  if (one_in(random, 8)) return;  // peace
  const auto rate = [&](Fault fault, std::uint64_t likely_of_eight,
                        cohort::simulation::Time at_least) {
    if (random.below(8) < likely_of_eight) swarm.every[fault] = scaled(random, at_least, 4);
  };
  rate(kBreak, 4, 300 * cohort::simulation::kMillisecond);
  rate(kClog, 3, 500 * cohort::simulation::kMillisecond);
  rate(kCrash, 3, 700 * cohort::simulation::kMillisecond);
  rate(kPause, 3, 700 * cohort::simulation::kMillisecond);
  rate(kReplace, 2, cohort::simulation::kSecond);
  rate(kDie, 1, 2 * cohort::simulation::kSecond);
  if (swarm.keeps_state) rate(kServerCrash, 5, cohort::simulation::kSecond);
  rate(kServerPause, 1, 2 * cohort::simulation::kSecond);
  swarm.calm_at = between(random, 2 * cohort::simulation::kSecond, 9 * cohort::simulation::kSecond);
}

}  // namespace

const char* to_text(Fault fault) {
  switch (fault) {
    case kBreak:
      return "break";
    case kClog:
      return "clog";
    case kCrash:
      return "crash";
    case kPause:
      return "pause";
    case kReplace:
      return "replace";
    case kDie:
      return "die";
    case kServerCrash:
      return "server crash";
    case kServerPause:
      return "server pause";
    case kRestart:
      return "restart";
    case kFaultKinds:
      break;
  }
  return "?";
}

Swarm draw_swarm(Seed seed) {
  RandomStream random(seed, "swarm");
  Swarm swarm;
  constexpr ServerMode kModes[] = {ServerMode::kSync, ServerMode::kAsync, ServerMode::kBounded};
  swarm.mode = kModes[random.below(3)];
  swarm.workers = 1 + static_cast<int>(random.below(4));
  swarm.staleness = static_cast<int>(random.below(4));
  if (swarm.mode == ServerMode::kSync && swarm.workers > 1 && one_in(random, 4)) {
    swarm.backup_workers =
        1 + static_cast<int>(random.below(static_cast<std::uint64_t>(swarm.workers - 1)));
  }
  swarm.keeps_state = !one_in(random, 3);
  swarm.steps = static_cast<int>(between(random, 3, 9));
  if (swarm.mode == ServerMode::kSync && one_in(random, 2)) swarm.total_updates = swarm.steps;
  draw_faults(random, swarm);
  swarm.snapshot_every = scaled(random, 100 * cohort::simulation::kMillisecond, 5);
  swarm.persist_takes = scaled(random, 2 * cohort::simulation::kMillisecond, 8);
  if (one_in(random, 4)) swarm.persist_fails = random.uniform(0.05, 0.5);
  swarm.snapshot_survives = random.uniform();
  swarm.delay = scaled(random, cohort::simulation::kMillisecond / 4, 8);
  if (one_in(random, 3)) swarm.split = random.uniform(0.05, 0.5);
  if (one_in(random, 3)) swarm.unnoticed = random.uniform(0.1, 1);
  if (one_in(random, 2)) swarm.lingering = random.uniform(0.1, 1);
  swarm.compute = scaled(random, 20 * cohort::simulation::kMillisecond, 4);
  if (one_in(random, 4)) swarm.slowness = random.uniform(2, 8);
  if (one_in(random, 5)) swarm.poison = random.uniform(0.05, 0.3);
  if (one_in(random, 4)) swarm.window_bytes = 128 * (1 + random.below(4));
  if (one_in(random, 2)) swarm.min_part = between(random, 1, 8);
  if (one_in(random, 3)) {
    swarm.last_looks =
        1 + static_cast<int>(random.below(static_cast<std::uint64_t>(swarm.workers)));
  }
  if (one_in(random, 2)) swarm.early_look = random.uniform(0.1, 1);
  if (one_in(random, 2)) swarm.evict_unconnected = swarm.evict_after;
  if (!one_in(random, 3)) {
    swarm.ahead = random.uniform(0.1, 1);
    swarm.min_part = between(random, 1, 4);
    swarm.speculation_stretch = static_cast<std::size_t>(between(random, 1, 8));
  }
  if (one_in(random, 2)) {
    swarm.congested = random.uniform(0.1, 0.9);
    swarm.piece = static_cast<std::size_t>(between(random, 1, 4));
  }
  if (swarm.calm_at > 0 && one_in(random, 4)) {
    swarm.every[kRestart] = scaled(random, 2 * cohort::simulation::kSecond, 2);
  }
  return swarm;
}

std::string Swarm::text() const {
  std::ostringstream out;
  const char* names[] = {"sync", "async", "ssp"};
  out << names[static_cast<int>(mode)] << ", " << workers << " workers, " << steps << " steps";
  if (mode == ServerMode::kBounded) out << ", staleness " << staleness;
  if (backup_workers > 0) out << ", " << backup_workers << " backup";
  if (total_updates > 0) out << ", " << total_updates << " updates";
  out << (keeps_state ? ", keeps state" : ", keeps nothing");
  for (std::uint32_t i = 0; i < kFaultKinds; ++i) {
    if (every[i] > 0) {
      out << ", " << to_text(static_cast<Fault>(i)) << " every "
          << every[i] / cohort::simulation::kMillisecond << " ms";
    }
  }
  out << ", calm at " << calm_at / cohort::simulation::kMillisecond << " ms, delay " << delay / 1000
      << " us, snapshot every " << snapshot_every / cohort::simulation::kMillisecond
      << " ms taking " << persist_takes / cohort::simulation::kMillisecond << " ms";
  if (last_looks > 0) out << ", " << last_looks << " last looks, early " << early_look;
  if (poison > 0) out << ", poison " << poison;
  if (congested > 0) out << ", congested " << congested << " in pieces of " << piece;
  return out.str();
}

}  // namespace cohort::server::simulation
