#include "transport/tcp_core.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <utility>

#include "core/error.h"

namespace cohort {
namespace {

constexpr std::chrono::seconds kPartingTime{2};
constexpr std::size_t kMaxLines = 4096;

}  // namespace

TcpLaneState::TcpLaneState(const TcpLane& a_lane, Rank own_index)
    : lane(a_lane),
      own(own_index),
      mailbox(own_index, static_cast<int>(a_lane.members.size()), a_lane.names),
      wires(a_lane.members.size(), nullptr),
      addresses(a_lane.addresses),
      missing(a_lane.members.size(), false),
      obstacles(a_lane.members.size()) {
  for (std::size_t member = 0; member < missing.size(); ++member) {
    const bool other = static_cast<Rank>(member) != own;
    missing[member] = other && !lane.late && (member == 0 || !lane.star || own == 0);
    if (lane.late && other) {
      mailbox.note_gone(static_cast<Rank>(member), "is lost: this rank has not reached it yet");
    }
  }
}

bool TcpLaneState::all_there() const {
  return std::find(missing.begin(), missing.end(), true) == missing.end();
}

std::string TcpLaneState::names_of_missing() const {
  std::string text;
  for (std::size_t member = 0; member < missing.size(); ++member) {
    if (!missing[member]) continue;
    text += (text.empty() ? "" : ", ") + mailbox.name(static_cast<Rank>(member));
  }
  return text;
}

TcpCore::TcpCore(const TcpNodeOptions& options)
    : options_(options), io_(1), work_(boost::asio::make_work_guard(io_)) {
  address_ = options_.listen;
  if (options_.size > 1) {
    listeners_.push_back(listen_for_others(options_.listen));
    address_ = listeners_.front()->address();
  }
  thread_ = std::thread([this] { io_.run(); });
}

TcpCore::~TcpCore() {
  boost::asio::post(io_, [this] {
    connectors_.clear();
    for (const auto& listener : listeners_) listener->stop();
    for (Line& line : lines_) line.wire->finish();
  });
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline_in(kPartingTime), [this] { return wires_ == 0; });
  }
  io_.stop();
  thread_.join();
  // What is left has links, which need the context.
  lines_.clear();
  listeners_.clear();
}

void TcpCore::note(const std::string& text) const {
  if (options_.log) options_.log(text);
}

std::string TcpCore::admit(const Identity& peer) const {
  if (peer.role != Role::kWorker) return "only workers connect to workers";
  if (peer.rank == options_.rank) {
    return "this is process " + std::to_string(peer.rank) + " itself: two have the same number";
  }
  if (peer.rank < 0 || peer.rank >= options_.size) {
    return "process " + std::to_string(options_.rank) + " counts " + std::to_string(options_.size) +
           " processes, so there is no process " + std::to_string(peer.rank);
  }
  if (!closed_to_others_.empty()) return closed_to_others_;
  return lines_.size() < kMaxLines ? "" : "there are too many connections";
}

std::unique_ptr<Listener> TcpCore::listen_for_others(const Address& address) {
  ListenerOptions listening{.address = address,
                            .self = {options_.job, Role::kWorker, options_.rank},
                            .credentials = options_.credentials,
                            .links = options_.links,
                            .runtime_folder = options_.runtime_folder,
                            .shared_memory = options_.shared_memory};
  ListenerEvents events;
  events.admit = [this](const Identity& peer) { return admit(peer); };
  events.accepted = [this](std::unique_ptr<Link> link) {
    lines_.push_back({std::make_unique<TcpWire>(io_, std::move(link), *this, true)});
    const std::lock_guard lock(mutex_);
    ++wires_;
  };
  events.log = [this](const std::string& text) { note(text); };
  return listen(io_, listening, std::move(events));
}

bool TcpCore::listen_also(const Address& address) {
  std::promise<bool> done;
  boost::asio::post(io_, [&] {
    try {
      listeners_.push_back(listen_for_others(address));
      done.set_value(true);
    } catch (const Error&) {
      done.set_value(false);
    }
  });
  return done.get_future().get();
}

void TcpCore::open(const std::shared_ptr<TcpLaneState>& lane, Deadline deadline) {
  boost::asio::post(io_, [this, lane, deadline] {
    lanes_[lane->lane.number] = lane;
    lane->deadline = deadline;
    for (Rank member = 0; member < lane->own && !lane->lane.late; ++member) {
      if (member == 0 || !lane->lane.star) call(lane, member);
    }
    for (Line& line : lines_) {
      if (!line.lane && line.asked_lane == lane->lane.number) place(line);
    }
  });
}

void TcpCore::call(const std::shared_ptr<TcpLaneState>& lane, Rank member, const Address& address,
                   Deadline deadline) {
  boost::asio::post(io_, [this, lane, member, address, deadline] {
    if (member != kAnyRank) lane->addresses[member] = address;
    lane->deadline = deadline;
    connect_to(lane, member, address);
  });
}

void TcpCore::call(const std::shared_ptr<TcpLaneState>& lane, Rank member) {
  connect_to(lane, member, lane->addresses[member]);
}

void TcpCore::connect_to(const std::shared_ptr<TcpLaneState>& lane, Rank member,
                         const Address& address) {
  const Rank wanted = member == kAnyRank ? kAnyRank : lane->lane.members[member];
  ConnectorOptions calling{.address = address,
                           .self = {options_.job, Role::kWorker, options_.rank},
                           .peer = {options_.job, Role::kWorker, wanted},
                           .credentials = options_.credentials,
                           .links = options_.links,
                           .runtime_folder = options_.runtime_folder,
                           .shared_memory = options_.shared_memory};
  const auto connected = [this, lane](std::unique_ptr<Link> link) {
    const auto& members = lane->lane.members;
    const auto there = std::find(members.begin(), members.end(), link->peer().rank);
    if (there == members.end()) {
      const std::lock_guard lock(lane->mutex);
      lane->refusal = link->peer_text() + " has no part in this";
      lane->changed.notify_all();
      return;
    }
    lines_.push_back({std::make_unique<TcpWire>(io_, std::move(link), *this, false)});
    Line& line = lines_.back();
    line.lane = lane;
    line.member = static_cast<Rank>(there - members.begin());
    {
      const std::lock_guard lock(mutex_);
      ++wires_;
    }
    line.wire->say_hello(static_cast<std::uint32_t>(lane->lane.number), lane->lane.agreement);
  };
  const auto failed = [lane, member](const ConnectFailure& failure) {
    const std::lock_guard lock(lane->mutex);
    if (member != kAnyRank) lane->obstacles[member] = failure.reason;
    if (failure.kind == ConnectFailure::Kind::kRefused) lane->refusal = failure.reason;
    lane->changed.notify_all();
  };
  try {
    connectors_[{lane->lane.number, member}] =
        connect(io_, calling, lane->deadline, connected, failed);
  } catch (const std::exception& error) {
    failed({ConnectFailure::Kind::kRefused, error.what()});
  }
}

// It went away between the connection and the welcome: another may come in its place.
void TcpCore::call_again(const std::shared_ptr<TcpLaneState>& lane, Rank member) {
  const auto pause = std::make_shared<boost::asio::steady_timer>(io_, kRetryPause);
  pause->async_wait([this, lane, member, pause](const boost::system::error_code& error) {
    if (!error && !lane->closed && Clock::now() < lane->deadline) call(lane, member);
  });
}

TcpCore::Line& TcpCore::line_of(const TcpWire& wire) {
  const auto found = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const Line& line) { return line.wire.get() == &wire; });
  COHORT_CHECK(found != lines_.end(), "a wire without a line");
  return *found;
}

void TcpCore::hello_arrived(TcpWire& wire, std::uint32_t lane, std::string agreement) {
  if (lane >= static_cast<std::uint32_t>(kTcpLanes)) throw PeerError("asked for an unknown lane");
  Line& line = line_of(wire);
  line.asked_lane = static_cast<int>(lane);
  line.agreement = std::move(agreement);
  for (const Line& other : lines_) {
    if (&other == &line || other.wire->ended() || other.number() != line.asked_lane ||
        other.wire->peer().rank != wire.peer().rank) {
      continue;
    }
    return wire.say_refusal("there is a process " + std::to_string(wire.peer().rank) +
                            " already, " + other.wire->peer_text() + ": two have the same number");
  }
  if (lanes_.count(line.asked_lane) != 0) place(line);
}

void TcpCore::place(Line& line) {
  const std::shared_ptr<TcpLaneState> lane = lanes_.at(line.asked_lane);
  const auto& members = lane->lane.members;
  const auto found = std::find(members.begin(), members.end(), line.wire->peer().rank);
  const std::string who = "process " + std::to_string(line.wire->peer().rank);
  if (found == members.end()) {
    return line.wire->say_refusal(who + " has no part in this");
  }
  if (line.agreement != lane->lane.agreement) {
    const std::string reason = who + " counts " + line.agreement + ", but process " +
                               std::to_string(options_.rank) + " counts " + lane->lane.agreement;
    note(reason);
    {
      const std::lock_guard lock(lane->mutex);
      lane->obstacles[found - members.begin()] = reason;
    }
    return line.wire->say_refusal(reason);
  }
  line.lane = lane;
  line.member = static_cast<Rank>(found - members.begin());
  line.wire->say_welcome();
  welcome(line, lane);
}

void TcpCore::welcome_arrived(TcpWire& wire) {
  Line& line = line_of(wire);
  welcome(line, line.lane);
  const std::lock_guard lock(line.lane->mutex);
  line.lane->reached = line.member;
  line.lane->changed.notify_all();
}

void TcpCore::welcome(Line& line, const std::shared_ptr<TcpLaneState>& lane) {
  lane->wires[line.member] = line.wire.get();
  if (lane->lane.returns) lane->mailbox.note_returned(line.member);
  if (lane->closed) line.wire->finish();
  const std::lock_guard lock(lane->mutex);
  lane->missing[line.member] = false;
  lane->changed.notify_all();
}

void TcpCore::refusal_arrived(TcpWire& wire, const std::string& reason) {
  TcpLaneState& lane = *line_of(wire).lane;
  {
    const std::lock_guard lock(lane.mutex);
    lane.refusal = reason;
    lane.changed.notify_all();
  }
  wire.finish();
}

void TcpCore::message_arrived(TcpWire& wire, Tag tag, Bytes payload) {
  Line& line = line_of(wire);
  line.lane->mailbox.put({line.member, tag, std::move(payload)});
}

void TcpCore::wire_ended(TcpWire& wire, const std::string& reason) {
  Line& line = line_of(wire);
  if (const auto lane = line.lane) {
    const bool current = lane->wires[line.member] == &wire;
    if (current) lane->wires[line.member] = nullptr;
    const std::lock_guard lock(lane->mutex);
    if (lane->missing[line.member]) {
      lane->obstacles[line.member] = reason;
      if (lane->refusal.empty()) call_again(lane, line.member);
    } else if (current) {
      const bool orderly = reason == kClosed || reason == kSaidGoodbye;
      lane->mailbox.note_gone(line.member, orderly ? kClosed : "is lost: " + reason);
    } else if (lane->lane.late && lane->reached < 0 && lane->refusal.empty()) {
      lane->refusal = wire.peer_text() + " went away: " + reason;
    }
    lane->changed.notify_all();
  }
  // Not from within a call of the link.
  boost::asio::post(io_, [this, &wire] {
    lines_.remove_if([&](const Line& other) { return other.wire.get() == &wire; });
    const std::lock_guard lock(mutex_);
    --wires_;
    changed_.notify_all();
  });
}

void TcpCore::send(const std::shared_ptr<TcpLaneState>& lane, Rank to,
                   std::shared_ptr<TcpOutgoing> message) {
  boost::asio::post(io_, [lane, to, message = std::move(message)]() mutable {
    if (TcpWire* wire = lane->wires[to]) {
      wire->send(std::move(message));
    } else {
      message->resolve(TcpOutgoing::State::kLost);
    }
  });
}

void TcpCore::abandon(const std::shared_ptr<TcpOutgoing>& message) {
  boost::asio::post(io_, [message] { message->own_now(); });
}

void TcpCore::close(const std::shared_ptr<TcpLaneState>& lane) {
  const auto done = std::make_shared<std::promise<void>>();
  std::future<void> given = done->get_future();
  boost::asio::post(io_, [this, lane, done] {
    if (!std::exchange(lane->closed, true)) {
      for (Rank member = 0; member < static_cast<Rank>(lane->wires.size()); ++member) {
        connectors_.erase({lane->lane.number, member});
        if (TcpWire* wire = lane->wires[member]) wire->finish();
      }
    }
    done->set_value();
  });
  given.wait_for(kPartingTime);
}

void TcpCore::admit_nobody(const std::string& why) {
  boost::asio::post(io_, [this, why] { closed_to_others_ = why; });
}

void TcpCore::stop_listening() {
  boost::asio::post(io_, [this] {
    for (const auto& listener : listeners_) listener->stop();
  });
}

}  // namespace cohort
