// What goes wrong in the simulated group.
#include <algorithm>

#include "simulation/process.h"

namespace cohort::membership::simulation {

void GroupWorld::plan(GroupFault kind) {
  if (plan_.every[kind] == 0) return;
  const cohort::simulation::Time in = around(plan_.every[kind]);
  if (now_ + in < plan_.calm_at) add(in, GroupEvent::kFault, kind);
}

GroupWorld::Process* GroupWorld::some_process() {
  const Rank rank = plan_.victim ? *plan_.victim : static_cast<Rank>(draw(plan_.size));
  Process& own = process(static_cast<std::uint64_t>(newest_[rank]));
  return own.runs() && own.stage != Stage::kOver ? &own : nullptr;
}

void GroupWorld::crash(Process& own) {
  say("process " + std::to_string(own.id) + " of rank " + std::to_string(own.rank) + " crashes");
  ++outcome_.counts[2];
  end_process(own, "it was killed");
  if (!chance(0.3)) {
    add(100 * cohort::simulation::kMillisecond + draw(3 * cohort::simulation::kSecond),
        GroupEvent::kSpawn, static_cast<std::uint32_t>(own.rank));
  }
}

void GroupWorld::fault(GroupFault kind) {
  plan(kind);
  Process* own = some_process();
  if (own == nullptr || (plan_.gentle && now_ < gentle_until_)) return;
  // Either far below a silence, or about as long as one, or far above.
  const cohort::simulation::Time length = plan_.gentle
                                              ? draw(2 * cohort::simulation::kSecond)
                                              : draw((cohort::simulation::kSecond / 2) << draw(7));
  gentle_until_ = now_ + length + cohort::simulation::kSecond;
  ++outcome_.counts[5];
  const std::string for_long =
      " for " + std::to_string(length / cohort::simulation::kMillisecond) + " ms";
  switch (kind) {
    case kCrash:
      return crash(*own);
    case kPause:
      say("process " + std::to_string(own->id) + " is stopped" + for_long);
      own->paused = true;
      own->paused_at = now_;
      return add(length, GroupEvent::kWake, static_cast<std::uint32_t>(own->id));
    case kBreak: {
      const auto other = static_cast<Rank>(draw(plan_.size));
      if (own->link[other] < 0) return;
      say("the link of process " + std::to_string(own->id) + " with rank " + std::to_string(other) +
          " breaks");
      const auto id = static_cast<std::uint32_t>(own->link[other]);
      for (const int end : {0, 1}) {
        Channel& channel = links_[id].towards[end];
        channel.parcels.resize(random_.below(channel.parcels.size() + 1));
        end_channel(id, end, !chance(plan_.unnoticed));
      }
      return;
    }
    case kDeaf: {
      // One direction: of one link, often with the leader; or of all.
      const bool hears = chance(0.5);
      const bool all = plan_.victim || chance(0.3);
      const Rank other = chance(0.5) ? 0 : static_cast<Rank>(draw(plan_.size));
      say("process " + std::to_string(own->id) + (hears ? " is not heard by " : " does not hear ") +
          (all ? "anybody" : "rank " + std::to_string(other)) + for_long);
      for (Rank each = 0; each < plan_.size; ++each) {
        if (each == own->rank || (!all && each != other)) continue;
        cohort::simulation::Time& until =
            hears ? blocked_[own->rank][each] : blocked_[each][own->rank];
        until = std::max(until, now_ + length);
      }
      return;
    }
    case kPartition: {
      const auto side = random_.below(std::uint64_t{1} << plan_.size);
      say("the network comes apart" + for_long + ", side " + std::to_string(side));
      for (Rank one = 0; one < plan_.size; ++one) {
        for (Rank other = 0; other < plan_.size; ++other) {
          if (((side >> one) & 1) == ((side >> other) & 1)) continue;
          blocked_[one][other] = std::max(blocked_[one][other], now_ + length);
        }
      }
      return;
    }
    case kLeave:
      if (!own->machine || own->stage != Stage::kIn || own->machine->end()) return;
      reasons_.insert("rank " + std::to_string(own->rank) + " failed");
      for (const auto& one : processes_) {
        one->must_hear = plan_.gentle && own->taken + 3 < plan_.operations;
      }
      own->machine->leave("rank " + std::to_string(own->rank) + " failed");
      return after(*own);
    case kGroupFaults:
      return;
  }
}

}  // namespace cohort::membership::simulation
