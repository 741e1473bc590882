#include "simulation/world.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "simulation/process.h"

namespace cohort::membership::simulation {
namespace {

constexpr cohort::simulation::Time kTickEvery = 250 * cohort::simulation::kMillisecond;
constexpr cohort::simulation::Time kSilence = 6 * cohort::simulation::kSecond;
// After the last fault: some silences, the doubts of some leaders, and the time to come back.
constexpr cohort::simulation::Time kPatience = 75 * cohort::simulation::kSecond;

GroupPlan draw_plan(Seed seed) {
  RandomStream random(seed, "elastic plan");
  const auto below = [&](cohort::simulation::Time bound) {
    return static_cast<cohort::simulation::Time>(random.below(static_cast<std::uint64_t>(bound)));
  };
  GroupPlan plan;
  plan.size = 2 + static_cast<int>(random.below(5));
  plan.operations = 6 + random.below(14);
  plan.delay = cohort::simulation::kMillisecond << below(6);
  plan.compute = (20 * cohort::simulation::kMillisecond) << below(6);
  if (below(2) == 0) plan.unnoticed = 0.4;
  const auto rate = [&](GroupFault fault, cohort::simulation::Time likely_of_eight) {
    if (below(8) < likely_of_eight)
      plan.every[fault] = (300 * cohort::simulation::kMillisecond) << below(6);
  };
  rate(kCrash, 3);
  rate(kPause, 3);
  rate(kDeaf, 3);
  const cohort::simulation::Time kind = below(8);
  if (kind == 0) {
    plan.gentle = true;
    plan.every[kCrash] = 0;
    if (below(3) == 0) plan.every[kLeave] = 2 * cohort::simulation::kSecond;
  } else if (kind <= 2 && plan.size > 2) {
    plan.victim = static_cast<Rank>(below(plan.size));
    // Of a leader that does not hear, others may seem to be at fault.
    if (*plan.victim == 0) plan.every[kDeaf] = 0;
  } else {
    rate(kBreak, 4);
    rate(kPartition, 3);
    if (below(8) == 0) plan.every[kLeave] = 2 * cohort::simulation::kSecond;
  }
  plan.calm_at = cohort::simulation::kSecond + below(12 * cohort::simulation::kSecond);
  return plan;
}

}  // namespace

GroupWorld::GroupWorld(Seed seed, std::FILE* trace)
    : plan_(draw_plan(seed)),
      random_(seed, "elastic schedule"),
      trace_(trace),
      blocked_(static_cast<std::size_t>(plan_.size),
               std::vector<cohort::simulation::Time>(static_cast<std::size_t>(plan_.size), 0)) {
  outcome_.counts.assign(6, 0);
}

GroupWorld::~GroupWorld() = default;

cohort::simulation::Time GroupWorld::around(cohort::simulation::Time mean) {
  return static_cast<cohort::simulation::Time>(-std::log(1 - random_.uniform()) *
                                               static_cast<double>(mean)) +
         1;
}

void GroupWorld::broken(const std::string& kind, const std::string& text) const {
  throw std::make_pair(kind, text);
}

cohort::simulation::ScheduleResult GroupWorld::run() {
  try {
    for (Rank rank = 0; rank < plan_.size; ++rank) {
      newest_.push_back(rank);
      processes_.push_back(std::make_unique<Process>(*this, rank, rank, /*enters=*/false));
      process(static_cast<std::uint64_t>(rank)).rate = 0.9 + 0.2 * random_.uniform();
      processes_.back()->machine->on_tick(clock(*processes_.back()));
    }
    for (Rank rank = 0; rank < plan_.size; ++rank) {
      Process& own = process(static_cast<std::uint64_t>(rank));
      for (Rank other = 0; other < rank; ++other) {
        connect(own, other);
        process(static_cast<std::uint64_t>(other)).counted[rank] = true;
      }
      add(draw(plan_.compute), GroupEvent::kOwner, static_cast<std::uint32_t>(rank));
    }
    add(kTickEvery, GroupEvent::kTick);
    for (std::uint32_t fault = 0; fault < kGroupFaults; ++fault) {
      plan(static_cast<GroupFault>(fault));
    }
    const auto over = [&] {
      return std::all_of(processes_.begin(), processes_.end(),
                         [](const auto& one) { return !one->alive || one->stage == Stage::kOver; });
    };
    while (!over()) {
      const auto event = queue_.take();
      now_ = event.time;
      ++outcome_.counts[0];
      trace_.mix(static_cast<std::uint64_t>(event.time));
      trace_.mix(static_cast<std::uint64_t>(event.kind) << 40 | event.subject);
      if (now_ > std::max(plan_.calm_at, cohort::simulation::Time{0}) + kPatience +
                     static_cast<cohort::simulation::Time>(plan_.operations) * 4 *
                         (plan_.compute + plan_.delay)) {
        check_end();
      }
      dispatch(event.kind, event.subject, event.extra);
    }
  } catch (const std::pair<std::string, std::string>& breach) {
    outcome_.breach = breach.first;
    outcome_.text = breach.second;
    say("BROKEN " + breach.first + ": " + breach.second);
  }
  outcome_.hash = trace_.hash();
  return outcome_;
}

// Some wait still.
void GroupWorld::check_end() {
  std::string text;
  for (const auto& one : processes_) {
    if (!one->alive || one->stage == Stage::kOver) continue;
    text += " process " + std::to_string(one->id) + " of rank " + std::to_string(one->rank) +
            (one->stage == Stage::kLooking ? " looks for the others;"
                                           : " has " + std::to_string(one->taken) + " answers;");
  }
  broken("stuck", text);
}

void GroupWorld::end_process(Process& process, const std::string& why) {
  if (trace_.wanted()) say("process " + std::to_string(process.id) + " ends: " + why);
  process.stage = Stage::kOver;
  process.alive = false;
  ++process.generation;
  for (Rank other = 0; other < plan_.size; ++other) close(process, other);
}

void GroupWorld::dispatch(GroupEvent kind, std::uint32_t subject, std::uint64_t extra) {
  switch (kind) {
    case GroupEvent::kTick:
      return tick();
    case GroupEvent::kDeliver:
      return deliver(subject, static_cast<int>(extra));
    case GroupEvent::kSpawn:
      if (!process(static_cast<std::uint64_t>(newest_[subject])).alive) {
        spawn(static_cast<Rank>(subject));
      }
      return;
    case GroupEvent::kFault:
      return fault(static_cast<GroupFault>(subject));
    case GroupEvent::kOwner:
    case GroupEvent::kDoor: {
      Process& own = process(subject);
      if (!own.alive || own.generation != extra) return;
      if (own.paused) return add(100 * cohort::simulation::kMillisecond, kind, subject, extra);
      if (kind == GroupEvent::kDoor) return look_for_group(own);
      own.wants_to_contribute = true;
      return owner_goes_on(own);
    }
    case GroupEvent::kWake: {
      Process& own = process(subject);
      if (!own.alive || !own.paused) return;
      say("process " + std::to_string(subject) + " wakes");
      own.paused = false;
      own.stopped = own.stopped || now_ - own.paused_at > 4 * cohort::simulation::kSecond;
      for (Rank other = 0; other < plan_.size; ++other) {
        if (own.link[other] < 0) continue;
        const auto id = static_cast<std::uint32_t>(own.link[other]);
        const int end = links_[id].process[0] == own.id ? 0 : 1;
        for (; links_[id].towards[end].waiting > 0; --links_[id].towards[end].waiting) {
          add(0, GroupEvent::kDeliver, id, static_cast<std::uint64_t>(end));
        }
      }
      return;
    }
  }
}

void GroupWorld::tick() {
  std::erase_if(live_links_,
                [&](std::uint32_t id) { return !links_[id].open[0] && !links_[id].open[1]; });
  const std::vector<std::uint32_t> links = live_links_;
  for (const std::uint32_t id : links) {
    for (const int end : {0, 1}) {
      Link& link = links_[id];
      Process& own = process(static_cast<std::uint64_t>(link.process[end]));
      if (!link.open[end] || !own.runs()) continue;
      const bool speaks = link.open[1 - end] && !link.towards[end].cut &&
                          process(static_cast<std::uint64_t>(link.process[1 - end])).runs() &&
                          blocked_until(link, end) <= now_;
      if (speaks || link.towards[end].waiting > 0) {
        link.heard[end] = now_;
      } else if (now_ - link.heard[end] > kSilence) {
        lose(id, end, "is silent");
      }
    }
  }
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& own = *processes_[i];
    if (!own.runs() || !own.machine || own.stage == Stage::kOver) continue;
    own.machine->on_tick(clock(own));
    after(own);
  }
  add(kTickEvery, GroupEvent::kTick);
}

}  // namespace cohort::membership::simulation
