// The links of the simulated group: what is sent arrives in order, late, in part, or not at all.
#include <algorithm>

#include "simulation/process.h"

namespace cohort::membership::simulation {

cohort::simulation::Time GroupWorld::blocked_until(const Link& link, int to) const {
  const Rank from = processes_[static_cast<std::size_t>(link.process[1 - to])]->rank;
  return blocked_[from][processes_[static_cast<std::size_t>(link.process[to])]->rank];
}

// To the newest process of a rank, which takes one link from each rank at a time.
bool GroupWorld::connect(Process& from, Rank to) {
  Process& other = process(static_cast<std::uint64_t>(newest_[to]));
  const bool reaches = blocked_[from.rank][to] <= now_ && blocked_[to][from.rank] <= now_;
  if (!reaches || !other.runs() || other.stage != Stage::kIn || other.link[from.rank] >= 0) {
    return false;
  }
  const auto id = static_cast<std::uint32_t>(links_.size());
  links_.push_back({{from.id, other.id}, {true, true}, {now_, now_}, {}});
  live_links_.push_back(id);
  from.link[to] = other.link[from.rank] = static_cast<int>(id);
  from.counted[to] = true;
  other.counted[from.rank] = false;
  return true;
}

void GroupWorld::send(Process& from, Rank to, Parcel parcel) {
  if (from.link[to] < 0) return;
  const auto id = static_cast<std::uint32_t>(from.link[to]);
  Link& link = links_[id];
  const int end = link.process[0] == from.id ? 1 : 0;
  Channel& channel = link.towards[end];
  if (channel.cut) return;
  if (trace_.wanted() && parcel.kind == Parcel::kElastic) {
    const ElasticMessage message = read_elastic(from.rank, parcel.payload);
    static constexpr std::array kNames = {"part",         "result", "farewell", "return",
                                          "introduction", "ready",  "entry",    "succession",
                                          "present",      "cut off"};
    say("  " + std::to_string(from.id) + " > " + std::to_string(link.process[end]) + " " +
        kNames.at(static_cast<std::size_t>(message.header.kind)) + " " +
        std::to_string(message.header.operation));
  }
  channel.last_arrival = std::max(channel.last_arrival, now_ + around(plan_.delay));
  channel.parcels.push_back(std::move(parcel));
  queue_.add(channel.last_arrival, GroupEvent::kDeliver, id, static_cast<std::uint64_t>(end));
}

// Sends what was sent before, and hangs up.
void GroupWorld::close(Process& process, Rank to) {
  if (process.link[to] < 0) return;
  const auto id = static_cast<std::uint32_t>(process.link[to]);
  const int end = links_[id].process[0] == process.id ? 0 : 1;
  links_[id].open[end] = false;
  process.link[to] = -1;
  process.counted[to] = false;
  end_channel(id, 1 - end, !chance(plan_.unnoticed));
}

void GroupWorld::end_channel(std::uint32_t id, int to, bool told) {
  Channel& channel = links_[id].towards[to];
  if (channel.cut) return;
  if (told) {
    channel.last_arrival = std::max(channel.last_arrival, now_ + around(plan_.delay));
    channel.parcels.push_back({Parcel::kEnd});
    queue_.add(channel.last_arrival, GroupEvent::kDeliver, id, static_cast<std::uint64_t>(to));
  }
  channel.cut = true;
}

void GroupWorld::deliver(std::uint32_t id, int end) {
  Link& link = links_[id];
  Channel& channel = link.towards[end];
  if (channel.parcels.empty()) return;  // it was cut off
  if (!link.open[end]) return channel.parcels.pop_front();
  const cohort::simulation::Time blocked = blocked_until(link, end);
  Process& own = process(static_cast<std::uint64_t>(link.process[end]));
  if (blocked > now_) {
    queue_.add(blocked + 1, GroupEvent::kDeliver, id, static_cast<std::uint64_t>(end));
    return;
  }
  if (own.paused) {
    ++channel.waiting;
    return;
  }
  Parcel parcel = std::move(channel.parcels.front());
  channel.parcels.pop_front();
  link.heard[end] = now_;
  if (parcel.kind == Parcel::kEnd) return lose(id, end, "has closed");
  hear(own, process(static_cast<std::uint64_t>(link.process[1 - end])).rank, std::move(parcel));
}

void GroupWorld::lose(std::uint32_t id, int end, const char* why) {
  Link& link = links_[id];
  if (!link.open[end]) return;
  link.open[end] = false;
  end_channel(id, 1 - end, !chance(plan_.unnoticed));
  Process& own = process(static_cast<std::uint64_t>(link.process[end]));
  const Rank other = process(static_cast<std::uint64_t>(link.process[1 - end])).rank;
  if (!own.alive || own.link[other] != static_cast<int>(id)) return;
  own.link[other] = -1;
  own.counted[other] = false;
  if (trace_.wanted()) {
    say("process " + std::to_string(own.id) + " loses rank " + std::to_string(other) + ", which " +
        why);
  }
  if (own.stage == Stage::kOver) return;
  if (own.machine) {
    if (own.machine->reaches(other)) own.machine->on_lost(other, why, clock(own));
    after(own);
  } else if (own.asked && own.door == other) {
    own.asked = false;
    add(300 * cohort::simulation::kMillisecond, GroupEvent::kDoor,
        static_cast<std::uint32_t>(own.id), ++own.generation);
  }
}

}  // namespace cohort::membership::simulation
