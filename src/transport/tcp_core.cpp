#include "transport/tcp_core.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <utility>

#include "core/error.h"

namespace cohort::transport {
namespace {

constexpr std::chrono::seconds kPartingTime{2};
constexpr std::size_t kMaxLines = 4096;
constexpr char kNoteSeparator = '\n';

// Agreement and introduction.
std::pair<std::string, std::string> lane_note(const std::string& note) {
  const auto end = note.find(kNoteSeparator);
  if (end == note.npos) return {note, ""};
  return {note.substr(0, end), note.substr(end + 1)};
}

}  // namespace

TcpLaneState::TcpLaneState(const TcpLane& a_lane, Rank own_index)
    : lane(a_lane),
      own(own_index),
      mailbox(own_index, static_cast<int>(a_lane.members.size()), a_lane.names),
      wires(a_lane.members.size(), nullptr),
      addresses(a_lane.addresses),
      missing(a_lane.members.size(), false),
      obstacles(a_lane.members.size()),
      introductions(a_lane.members.size()) {
  for (std::size_t member = 0; member < missing.size(); ++member) {
    const bool other = static_cast<Rank>(member) != own;
    missing[member] = other && !lane.late && (member == 0 || !lane.star || own == 0);
    if (lane.late && other) {
      mailbox.note_gone(static_cast<Rank>(member), "is lost: this rank has not reached it yet");
    }
  }
}

std::optional<Rank> TcpLaneState::member_of(Rank process) const {
  const auto found = std::find(lane.members.begin(), lane.members.end(), process);
  if (found == lane.members.end()) return std::nullopt;
  return static_cast<Rank>(found - lane.members.begin());
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

network::Objection TcpCore::admit(const network::Greeting& hello) const {
  const network::Identity& peer = hello.self;
  if (peer.role != network::Role::kWorker) return {"only workers connect to workers"};
  if (peer.rank == options_.rank) {
    return {"this is process " + std::to_string(peer.rank) + " itself: two have the same number"};
  }
  if (peer.rank < 0 || peer.rank >= options_.size) {
    return {"process " + std::to_string(options_.rank) + " counts " +
            std::to_string(options_.size) + " processes, so there is no process " +
            std::to_string(peer.rank)};
  }
  if (!closed_to_others_.empty()) return {closed_to_others_};
  if (lines_.size() >= kMaxLines) return {"there are too many connections"};
  if (hello.lane >= kTcpLanes) return {"there is no such lane"};
  for (const Line& line : lines_) {
    if (line.lane->lane.number == hello.lane && line.wire->peer().rank == peer.rank &&
        !line.wire->ended()) {
      return {"there is a process " + std::to_string(peer.rank) + " already, " +
              line.wire->peer_text() + ": two have the same number"};
    }
  }
  const auto lane = lanes_.find(hello.lane);
  if (lane != lanes_.end()) return admit_to(*lane->second, hello);
  return {"process " + std::to_string(options_.rank) + " is not that far yet", /*later=*/true};
}

network::Objection TcpCore::admit_to(TcpLaneState& lane, const network::Greeting& hello) const {
  const auto member = lane.member_of(hello.self.rank);
  const std::string who = "process " + std::to_string(hello.self.rank);
  if (!member) return {who + " has no part in this"};
  const auto [agreement, introduction] = lane_note(hello.note);
  const std::lock_guard lock(lane.mutex);
  if (agreement != lane.lane.agreement) {
    const std::string reason = who + " counts " + agreement + ", but process " +
                               std::to_string(options_.rank) + " counts " + lane.lane.agreement;
    lane.obstacles[*member] = reason;
    return {reason};
  }
  lane.introductions[*member] = introduction;
  return {};
}

std::unique_ptr<network::Listener> TcpCore::listen_for_others(const network::Address& address) {
  network::ListenerOptions listening{.address = address,
                                     .self = {options_.job, network::Role::kWorker, options_.rank},
                                     .credentials = options_.credentials,
                                     .links = options_.links,
                                     .runtime_folder = options_.runtime_folder,
                                     .shared_memory = options_.shared_memory};
  network::ListenerEvents events;
  events.admit = [this](const network::Greeting& hello) { return admit(hello); };
  events.accepted = [this](std::unique_ptr<network::Link> link) {
    const auto lane = lanes_.at(link->lane());
    const Rank member = *lane->member_of(link->peer().rank);
    add_line(std::move(link), lane, member, true);
  };
  events.log = [this](const std::string& text) { note(text); };
  return network::listen(io_, listening, std::move(events));
}

bool TcpCore::listen_also(const network::Address& address) {
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
  });
}

void TcpCore::call(const std::shared_ptr<TcpLaneState>& lane, Rank member,
                   const network::Address& address, Deadline deadline) {
  boost::asio::post(io_, [this, lane, member, address, deadline] {
    if (member != network::kAnyRank) lane->addresses[member] = address;
    lane->deadline = deadline;
    connect_to(lane, member, address);
  });
}

void TcpCore::call(const std::shared_ptr<TcpLaneState>& lane, Rank member) {
  connect_to(lane, member, lane->addresses[member]);
}

void TcpCore::connect_to(const std::shared_ptr<TcpLaneState>& lane, Rank member,
                         const network::Address& address) {
  const Rank wanted = member == network::kAnyRank ? network::kAnyRank : lane->lane.members[member];
  network::ConnectorOptions calling{
      .address = address,
      .self = {options_.job, network::Role::kWorker, options_.rank},
      .peer = {options_.job, network::Role::kWorker, wanted},
      .lane = static_cast<std::uint16_t>(lane->lane.number),
      .note = lane->lane.agreement + kNoteSeparator + lane->lane.introduction,
      .credentials = options_.credentials,
      .links = options_.links,
      .runtime_folder = options_.runtime_folder,
      .shared_memory = options_.shared_memory};
  const auto connected = [this, lane](std::unique_ptr<network::Link> link) {
    const auto there = lane->member_of(link->peer().rank);
    const std::string who = link->peer_text();
    if (there) add_line(std::move(link), lane, *there, false);
    const std::lock_guard lock(lane->mutex);
    if (there) lane->reached = *there;
    if (!there) lane->refusal = who + " has no part in this";
    lane->changed.notify_all();
  };
  const auto failed = [lane, member](const network::ConnectFailure& failure) {
    const std::lock_guard lock(lane->mutex);
    if (member != network::kAnyRank) lane->obstacles[member] = failure.reason;
    if (failure.kind == network::ConnectFailure::Kind::kRefused) lane->refusal = failure.reason;
    lane->changed.notify_all();
  };
  try {
    connectors_[{lane->lane.number, member}] =
        network::connect(io_, calling, lane->deadline, connected, failed);
  } catch (const std::exception& error) {
    failed({network::ConnectFailure::Kind::kRefused, error.what()});
  }
}

TcpCore::Line& TcpCore::line_of(const TcpWire& wire) {
  const auto found = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const Line& line) { return line.wire.get() == &wire; });
  COHORT_CHECK(found != lines_.end(), "a wire without a line");
  return *found;
}

void TcpCore::add_line(std::unique_ptr<network::Link> link,
                       const std::shared_ptr<TcpLaneState>& lane, Rank member, bool accepted) {
  lines_.push_back(
      {std::make_unique<TcpWire>(io_, std::move(link), *this, accepted), lane, member});
  TcpWire& wire = *lines_.back().wire;
  {
    const std::lock_guard lock(mutex_);
    ++wires_;
  }
  lane->wires[member] = &wire;
  if (lane->lane.returns) lane->mailbox.note_returned(member);
  if (lane->closed) wire.finish();
  const std::lock_guard lock(lane->mutex);
  lane->missing[member] = false;
  lane->changed.notify_all();
}

void TcpCore::message_arrived(TcpWire& wire, Tag tag, Bytes payload) {
  Line& line = line_of(wire);
  line.lane->mailbox.put({line.member, tag, std::move(payload)});
}

void TcpCore::wire_ended(TcpWire& wire, const std::string& reason) {
  Line& line = line_of(wire);
  TcpLaneState& lane = *line.lane;
  if (lane.wires[line.member] == &wire) {
    lane.wires[line.member] = nullptr;
    const bool orderly = reason == kClosed || reason == network::kSaidGoodbye;
    const std::lock_guard lock(lane.mutex);
    // Who gave up before it was welcomed comes again.
    lane.missing[line.member] = lane.starting && wire.has_not_spoken();
    if (lane.missing[line.member]) {
      lane.obstacles[line.member] = reason;
    } else {
      lane.mailbox.note_gone(line.member, orderly ? kClosed : "is lost: " + reason);
    }
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

void TcpCore::give_up(const std::shared_ptr<TcpLaneState>& lane, Rank member) {
  boost::asio::post(io_, [lane, member] {
    if (TcpWire* wire = std::exchange(lane->wires[member], nullptr)) wire->finish();
  });
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

}  // namespace cohort::transport
