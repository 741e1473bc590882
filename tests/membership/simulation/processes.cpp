// What the processes of the simulated group do: they compute, gossip, contribute, and come back.
#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "simulation/process.h"

namespace cohort::membership::simulation {
namespace {

constexpr cohort::simulation::Time kTimeToReach = 15 * cohort::simulation::kSecond;
constexpr cohort::simulation::Time kTryAgainAfter = 300 * cohort::simulation::kMillisecond;

// What a rank contributes: who it is, and to what.
struct Part {
  std::int32_t process = 0;
  std::int32_t stop = 0;
  std::uint64_t operation = 0;
};

template <class Value>
Bytes bytes_from(const Value& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::optional<bool> GroupWorld::Process::has_ended(Rank other) {
  const Process& there = world_.process(static_cast<std::uint64_t>(address[other]));
  const bool answers =
      world_.blocked_[rank][other] <= world_.now_ && world_.blocked_[other][rank] <= world_.now_;
  return answers && !there.alive;
}

std::string GroupWorld::Process::introduce(Rank other, const std::string& text) {
  address[other] = std::stoi(text);
  return "";
}

Deadline GroupWorld::clock(const Process& process) const {
  return cohort::simulation::moment(
      static_cast<cohort::simulation::Time>(static_cast<double>(now_) * process.rate));
}

GroupWorld::Process& GroupWorld::spawn(Rank rank) {
  const int id = static_cast<int>(processes_.size());
  processes_.push_back(std::make_unique<Process>(*this, id, rank, /*enters=*/true));
  Process& own = *processes_.back();
  newest_[rank] = id;
  own.rate = 0.9 + 0.2 * random_.uniform();
  own.stage = Stage::kLooking;
  own.until = now_ + kTimeToReach;
  say("process " + std::to_string(id) + " comes in the place of rank " + std::to_string(rank));
  add(kTryAgainAfter, GroupEvent::kDoor, static_cast<std::uint32_t>(id), ++own.generation);
  return own;
}

void GroupWorld::look_for_group(Process& own) {
  if (own.asked) return;
  if (now_ > own.until) return end_process(own, "it has not found the others");
  own.door = (own.door + 1) % plan_.size;
  if (own.door != own.rank && connect(own, own.door)) {
    own.asked = true;
    send(own, own.door,
         {Parcel::kElastic,
          elastic_message(ElasticKind::kReturn, 0, bytes_of(std::to_string(own.id)))});
    return;
  }
  add(kTryAgainAfter, GroupEvent::kDoor, static_cast<std::uint32_t>(own.id), ++own.generation);
}

void GroupWorld::introduced(Process& own, std::span<const std::byte> payload) {
  const ElasticAnswer answer = read_answer(payload, plan_.size);
  for (Rank other = 0; other < plan_.size; ++other) {
    if (other != own.rank && other != own.door && answer.present[other]) connect(own, other);
  }
  own.stage = Stage::kIn;
  own.machine.emplace(own.rank, plan_.size, own, own.door);
  for (Rank other = 0; other < plan_.size; ++other) {
    if (other != own.rank && own.link[other] < 0) {
      own.machine->on_lost(other, "was not reached", clock(own));
    }
  }
  own.machine->on_tick(clock(own));
  own.machine->enter();
  for (const auto& [from, message] : std::exchange(own.inbox, {})) {
    own.machine->on_message(from, message, clock(own));
  }
  after(own);
}

void GroupWorld::hear(Process& own, Rank from, Parcel parcel) {
  if (own.stage == Stage::kOver) return;
  if (parcel.kind == Parcel::kGossip) {
    own.gossip[from] = std::max(own.gossip[from], parcel.round);
    return owner_goes_on(own);
  }
  if (own.machine) {
    own.machine->on_message(from, parcel.payload, clock(own));
    return after(own);
  }
  const ElasticMessage message = read_elastic(from, parcel.payload);
  const bool answers = own.asked && from == own.door;
  if (answers && message.header.kind == ElasticKind::kIntroduction) {
    introduced(own, message.payload);
  } else if (answers && message.header.kind == ElasticKind::kFarewell) {
    for (Rank other = 0; other < plan_.size; ++other) close(own, other);
    own.asked = false;
    add(kTryAgainAfter, GroupEvent::kDoor, static_cast<std::uint32_t>(own.id), ++own.generation);
  } else if (!answers) {  // otherwise it was for a predecessor
    own.inbox.emplace_back(from, std::move(parcel.payload));
  }
}

// What the machine has come to.
void GroupWorld::after(Process& own) {
  while (own.stage == Stage::kIn && own.machine->answered() > own.taken) take_answer(own);
  if (own.stage != Stage::kIn) return;
  if (own.machine->entry() && !own.entered) {
    own.entered = true;
    const Bytes& entry = *own.machine->entry();
    std::memcpy(own.seats.data(), entry.data(), entry.size());
    own.address = own.seats;
    say("process " + std::to_string(own.id) + " has entered");
    ++outcome_.counts[3];
    add(around(plan_.compute), GroupEvent::kOwner, static_cast<std::uint32_t>(own.id),
        ++own.generation);
  }
  const auto& end = own.machine->end();
  if (!end) return owner_goes_on(own);
  if (!end->cut_off) {
    if (!reasons_.contains(end->reason)) broken("reason", end->reason);
    return end_process(own, end->reason);
  }
  ++outcome_.counts[4];
  const bool excused = !plan_.gentle && (!plan_.victim || *plan_.victim == own.rank);
  if (!excused) broken("evicted", end->reason);
  end_process(own, end->reason);
  spawn(own.rank);
}

void GroupWorld::take_answer(Process& own) {
  check_answer(own);
  const ElasticAnswer& answer = own.machine->answer();
  own.taken = own.machine->answered();
  ++outcome_.counts[1];
  for (const auto& [rank, text] : answer.joined) {
    own.seats[rank] = own.address[rank] = std::stoi(text);
    own.gossip[rank] = own.taken;
  }
  bool stops = false;
  for (std::size_t at = 0; at < answer.result.size(); at += sizeof(Part)) {
    Part part;
    std::memcpy(&part, answer.result.data() + at, sizeof part);
    stops = stops || part.stop != 0;
  }
  if (trace_.wanted()) {
    std::string here;
    for (Rank rank = 0; rank < plan_.size; ++rank) {
      if (answer.present[rank]) here += " " + std::to_string(rank);
    }
    say("process " + std::to_string(own.id) + " has answer " + std::to_string(own.taken) + " of " +
        std::to_string(answer.leader) + ":" + here);
  }
  if (stops && own.must_hear) broken("reason", "it does not reach all");
  if (stops) return end_process(own, "all is done");
  if (answer.leader == own.rank) {
    for (const auto& [rank, text] : answer.joined) {
      own.machine->welcome(rank, std::as_bytes(std::span(own.seats)));
    }
  }
  for (Rank other = 0; other < plan_.size; ++other) {
    if (!own.gone(other)) send(own, other, {Parcel::kGossip, {}, own.taken});
  }
  if (own.entered) {
    add(around(plan_.compute), GroupEvent::kOwner, static_cast<std::uint32_t>(own.id),
        ++own.generation);
  }
}

void GroupWorld::check_answer(Process& own) {
  const std::uint64_t number = own.machine->answered();
  const ElasticAnswer& answer = own.machine->answer();
  const bool newcomer = !own.entered && own.taken == 0;
  if (!newcomer && number != own.taken + 1) {
    broken("order", "answer " + std::to_string(number) + " follows " + std::to_string(own.taken));
  }
  if (own.has_last) {
    Confirmed& confirmed = confirmed_[own.taken];
    if (confirmed.by.empty()) confirmed.answer = own.last;
    // Where all of the other side that it knew have ended, one that is left may go on alone.
    const bool all_ended = std::none_of(confirmed.by.begin(), confirmed.by.end(), [&](int id) {
      const Process& other = process(static_cast<std::uint64_t>(id));
      return other.alive && !other.alone && own.address[other.rank] == id;
    });
    if (confirmed.answer != own.last && !all_ended) {
      broken("split", "two sides have gone on from different answers " + std::to_string(own.taken));
    }
    if (confirmed.answer != own.last && own.last_stopped && !own.alone) {
      broken("split",
             "one that was stopped goes on from another answer " + std::to_string(own.taken));
    }
    if (confirmed.answer != own.last) {
      own.alone = true;
      confirmed = {own.last, {}};
    }
    confirmed.by.insert(own.id);
  }
  Bytes whole = encode(answer);
  own.last_stopped = std::exchange(own.stopped, false);
  own.last = std::move(whole);
  own.has_last = true;
  std::set<Rank> heard;
  for (std::size_t at = 0; at < answer.result.size(); at += sizeof(Part)) {
    Part part;
    std::memcpy(&part, answer.result.data() + at, sizeof part);
    const Rank rank = process(static_cast<std::uint64_t>(part.process)).rank;
    heard.insert(rank);
    if (part.operation != number) broken("mixed", "a part of another operation");
    if (!newcomer && own.seats[rank] != part.process) {
      broken("lost rank", "process " + std::to_string(part.process) +
                              ", which was given up, has a part in answer " +
                              std::to_string(number));
    }
  }
  for (Rank rank = 0; rank < plan_.size; ++rank) {
    const bool joins = std::any_of(answer.joined.begin(), answer.joined.end(),
                                   [&](const auto& one) { return one.first == rank; });
    if (answer.present[rank] != (heard.contains(rank) || joins)) {
      broken("mixed", "who is present and whose parts are in differ");
    }
    if (plan_.gentle && !answer.present[rank]) broken("evicted", "without a reason");
  }
}

bool GroupWorld::has_gossip(const Process& own) const {
  for (const Rank other : {(own.rank + 1) % plan_.size, (own.rank + plan_.size - 1) % plan_.size}) {
    if (other == own.rank || !own.machine->answer().present[other] || own.gone(other)) continue;
    if (own.gossip[other] < own.taken) return false;
  }
  return true;
}

void GroupWorld::owner_goes_on(Process& own) {
  if (!own.wants_to_contribute || !own.runs() || own.stage != Stage::kIn) return;
  if (own.machine->end() || !has_gossip(own)) return;
  own.wants_to_contribute = false;
  const std::uint64_t operation = own.taken + 1;
  const Part part{own.id, operation >= plan_.operations ? 1 : 0, operation};
  const auto combine = [](const std::map<Rank, Bytes>& parts) {
    ElasticGroup::Combined combined;
    combined.lets_in = true;
    for (const auto& [rank, bytes] : parts) {
      combined.result.insert(combined.result.end(), bytes.begin(), bytes.end());
      Part one;
      std::memcpy(&one, bytes.data(), sizeof one);
      if (one.stop != 0) combined.lets_in = false;
    }
    return combined;
  };
  own.machine->contribute(bytes_from(part), combine, clock(own));
  after(own);
}

}  // namespace cohort::membership::simulation
