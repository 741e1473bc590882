// The world's network: what is sent arrives in order, late, in pieces, in part, or not at all.
#include <sstream>

#include "core/error.h"
#include "simulation/frame_text.h"
#include "simulation/world.h"

namespace cohort::server::simulation {

cohort::simulation::Time World::delay() { return around(swarm_.delay); }

bool World::stopped(const Wire& wire, End end) const {
  return end == kServerEnd ? server_.paused
                           : processes_[static_cast<std::size_t>(wire.process)]->paused;
}

cohort::simulation::Time World::blocked_until(const Wire& wire, End to) const {
  const auto& process = *processes_[static_cast<std::size_t>(wire.process)];
  return std::max(wire.towards[to].clogged_until, process.clogged_until[to]);
}

void World::connect(WorkerProcess& process) {
  if (!process.alive || process.connection != 0) return;
  const bool blocked = process.clogged_until[0] > now_ || process.clogged_until[1] > now_;
  if (process.paused || blocked || !server_.up() || server_.paused) {
    queue_.add(now_ + 100 * cohort::simulation::kMillisecond +
                   draw(200 * cohort::simulation::kMillisecond),
               EventKind::kConnect, static_cast<std::uint32_t>(process.index()));
    return;
  }
  Wire& made = wires_.emplace_back();
  made.id = static_cast<std::uint32_t>(wires_.size());
  made.process = process.index();
  made.boot = server_.boot();
  made.heard = {now_, now_};
  live_wires_.push_back(made.id);
  process.connection = made.id;
  if (tracing()) {
    say("process " + std::to_string(process.index()) + " of worker " +
        std::to_string(process.rank()) + " connects as connection " + std::to_string(made.id));
  }
  on_server([&] {
    server_.machine().on_connected(made.id, process.rank(), cohort::simulation::moment(now_));
  });
  process.connected();
}

void World::worker_sends(WorkerProcess& process, const network::FrameHeader& header,
                         std::span<const std::byte> payload) {
  if (process.connection == 0) {
    throw Violation(Breach::kOther, "a client sends without a connection");
  }
  oracle_.worker_sent(process.index(), header, payload);
  Parcel parcel;
  parcel.header = header;
  parcel.header.length = static_cast<std::uint32_t>(payload.size());
  parcel.payload.assign(payload.begin(), payload.end());
  send(wire(process.connection), kServerEnd, std::move(parcel));
}

void World::server_sends(membership::ConnectionId to, const network::FrameHeader& header,
                         std::span<const std::byte> payload, network::Kept kept) {
  Wire& through = wire(to);
  if (!through.open[kServerEnd]) {
    throw Violation(Breach::kOther, "the server sends to a connection that is no more");
  }
  oracle_.model_seen(server_.machine().version(), server_.machine().parameters(), now_);
  oracle_.server_sent(through.process, header, payload, now_);
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kJoined)) {
    processes_[static_cast<std::size_t>(through.process)]->joined_by = to;
  }
  Parcel parcel;
  parcel.header = header;
  parcel.header.length = static_cast<std::uint32_t>(payload.size());
  if (kept == network::Kept::kLent) {
    parcel.lent = payload;
  } else {
    parcel.payload.assign(payload.begin(), payload.end());
  }
  send(through, kWorkerEnd, std::move(parcel));
}

bool World::has_room(membership::ConnectionId to) {
  if (!chance(swarm_.congested)) return true;
  queue_.add(now_ + draw(5 * cohort::simulation::kMillisecond), EventKind::kRoom,
             static_cast<std::uint32_t>(to));
  return false;
}

void World::give_room(Wire& wire) {
  if (!server_.up() || wire.boot != server_.boot() || !wire.open[kServerEnd]) return;
  if (server_.paused) {
    queue_.add(now_ + draw(5 * cohort::simulation::kMillisecond), EventKind::kRoom, wire.id);
    return;
  }
  if (tracing()) say("connection " + std::to_string(wire.id) + " has room");
  on_server([&] { server_.machine().on_room(wire.id, cohort::simulation::moment(now_)); });
}

void World::server_closes(membership::ConnectionId connection, const std::string& reason) {
  Wire& closed = wire(connection);
  if (tracing()) say("server closes connection " + std::to_string(connection) + ": " + reason);
  if (!closed.open[kServerEnd]) return;
  closed.open[kServerEnd] = false;
  end_channel(closed, kWorkerEnd);
}

void World::send(Wire& wire, End to, Parcel parcel) {
  Channel& channel = wire.towards[to];
  trace_.mix(static_cast<std::uint64_t>(parcel.header.type) << 32 | parcel.header.detail);
  trace_.mix(parcel.header.sequence ^ parcel.header.incarnation << 20 ^ parcel.header.place << 40);
  if (tracing()) {
    say("  " + std::to_string(wire.id) + (to == kServerEnd ? " > " : " < ") +
        frame_text(parcel.header, parcel.bytes(), swarm_.workers) +
        (channel.cut ? "  (into a broken connection)" : ""));
  }
  if (channel.cut) return;
  channel.last_arrival = std::max(channel.last_arrival, now_ + delay());
  channel.push(std::move(parcel));
  queue_.add(channel.last_arrival, EventKind::kDeliver, wire.id, to);
}

void World::deliver(Wire& wire, End to) {
  Channel& channel = wire.towards[to];
  if (channel.empty()) return;  // it was cut off
  if (!wire.open[to]) return channel.pop();
  const cohort::simulation::Time blocked = blocked_until(wire, to);
  if (blocked > now_) {
    queue_.add(blocked + 1, EventKind::kDeliver, wire.id, to);
  } else if (stopped(wire, to)) {
    ++channel.waiting;
  } else {
    take_front(wire, to);
  }
}

void World::take_front(Wire& wire, End to) {
  Channel& channel = wire.towards[to];
  if (channel.front().last) {
    channel.pop();
    return end_lost(wire, to, "closed");
  }
  auto& process = *processes_[static_cast<std::size_t>(wire.process)];
  const network::FrameHeader header = channel.front().header;
  wire.heard[to] = now_;
  try {
    if (!channel.reading && header.length > 0) {
      const auto place = to == kServerEnd ? server_.machine().place_for(wire.id, header)
                                          : process.place_for(header);
      channel.place = place.value_or(std::span<std::byte>());
      channel.reading = true;
      if (place && place->size() != header.length) {
        throw Violation(Breach::kOther, "place_for gave a place of another size");
      }
      if (chance(swarm_.split)) {
        const auto bytes = channel.front().bytes();
        const std::size_t part = bytes.size() / 2;
        if (place) std::copy_n(bytes.begin(), part, place->begin());
        queue_.add(now_ + delay(), EventKind::kDeliver, wire.id, to);
        return;
      }
    }
    Parcel parcel = std::move(channel.front());
    const std::span<std::byte> place = channel.place;
    channel.place = {};
    channel.pop();
    parcel.copy_lent();
    if (!place.empty()) std::copy(parcel.payload.begin(), parcel.payload.end(), place.begin());
    const std::span<const std::byte> payload =
        place.empty() ? std::span<const std::byte>(parcel.payload) : place;
    if (tracing()) {
      say(std::string(to == kServerEnd ? "server" : "worker") + " gets " + std::to_string(wire.id) +
          ": " + frame_text(header, payload, swarm_.workers));
    }
    if (to == kServerEnd) {
      wire.introduced = true;  // workers begin with a join
      server_hears(wire);
      oracle_.server_got(wire.process, header, payload);
      on_server([&] {
        server_.machine().on_frame(wire.id, header, payload, cohort::simulation::moment(now_));
      });
    } else {
      process.frame(header, payload, wire.boot);
    }
  } catch (const PeerError& error) {
    throw Violation(Breach::kOther, std::string("an honest peer is called a liar by the ") +
                                        (to == kServerEnd ? "server: " : "worker: ") +
                                        error.what());
  }
}

// What comes late by an older connection says nothing of a worker whose newer one seems to be open.
void World::server_hears(Wire& from) {
  const membership::ConnectionId joined =
      processes_[static_cast<std::size_t>(from.process)]->joined_by;
  const bool counts = from.id >= joined || !wire(joined).open[kServerEnd];
  if (counts) oracle_.server_heard(from.process, now_);
}

void World::end_lost(Wire& wire, End end, const char* why) {
  if (!wire.open[end]) return;
  wire.open[end] = false;
  end_channel(wire, other(end));
  if (tracing()) {
    say(std::string(end == kServerEnd ? "server" : "worker") + " loses connection " +
        std::to_string(wire.id) + ": " + why);
  }
  if (end == kServerEnd) {
    if (processes_[static_cast<std::size_t>(wire.process)]->joined_by == wire.id) {
      oracle_.server_lost(wire.process, now_);
    }
    on_server([&] { server_.machine().on_lost(wire.id, cohort::simulation::moment(now_)); });
    return;
  }
  auto& process = *processes_[static_cast<std::size_t>(wire.process)];
  process.lost();
  queue_.add(now_ + draw(300 * cohort::simulation::kMillisecond), EventKind::kConnect,
             static_cast<std::uint32_t>(process.index()));
}

void World::end_channel(Wire& wire, End to) {
  Channel& channel = wire.towards[to];
  if (channel.cut) return;
  Parcel last;
  last.last = true;
  channel.last_arrival = std::max(channel.last_arrival, now_ + delay());
  channel.copy_lent();
  channel.push(std::move(last));
  channel.cut = true;
  queue_.add(channel.last_arrival, EventKind::kDeliver, wire.id, to);
}

void World::drop_tail(Channel& channel) {
  if (channel.cut) return;
  channel.copy_lent();
  channel.keep_first(static_cast<std::size_t>(random_.below(channel.size() + 1)));
}

void World::break_wire(Wire& wire) {
  for (const End to : {kServerEnd, kWorkerEnd}) {
    Channel& channel = wire.towards[to];
    drop_tail(channel);
    if (chance(swarm_.lingering))
      channel.clogged_until = now_ + draw(4 * cohort::simulation::kSecond);
    if (chance(swarm_.unnoticed)) {
      channel.copy_lent();
      channel.cut = true;
    } else {
      end_channel(wire, to);
    }
  }
}

void World::heartbeat(Wire& wire) {
  for (const End to : {kServerEnd, kWorkerEnd}) {
    if (!wire.open[to] || stopped(wire, to)) continue;
    const bool heard = wire.open[other(to)] && !stopped(wire, other(to)) && !wire.towards[to].cut &&
                       blocked_until(wire, to) <= now_;
    if (heard) {
      wire.heard[to] = now_;
      if (to == kServerEnd) {
        if (wire.introduced) server_hears(wire);
        server_.machine().on_heard(wire.id, cohort::simulation::moment(now_));
      }
    } else if (now_ - wire.heard[to] > swarm_.silence) {
      end_lost(wire, to, "silent");
    }
  }
}

}  // namespace cohort::server::simulation
