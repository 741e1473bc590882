#include "transport/tcp.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "core/error.h"
#include "transport/tcp_core.h"

namespace cohort::transport {
namespace {

// From here on a sender waits instead of having its message copied.
constexpr std::size_t kLentBytes = std::size_t{128} << 10;
// The connectors' own last words come at their deadline.
constexpr std::chrono::milliseconds kLastWords{200};

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

class LaneTransport final : public TcpTransport {
 public:
  LaneTransport(std::shared_ptr<TcpCore> core, std::shared_ptr<TcpLaneState> lane)
      : TcpTransport(lane->own, static_cast<int>(lane->lane.members.size())),
        core_(std::move(core)),
        lane_(std::move(lane)) {}
  ~LaneTransport() override {
    close();
    lane_->mailbox.clear();
  }

  void send(Rank to, Tag tag, std::span<const std::byte> payload, Deadline deadline) override {
    check_rank(to);
    const auto start = Clock::now();
    Mailbox& own = lane_->mailbox;
    if (payload.size() > kTcpMaxMessage) {
      throw RunError("a message of " + std::to_string(payload.size()) + " bytes is longer than " +
                     std::to_string(kTcpMaxMessage) + ", the most that tcp carries");
    }
    for (const Rank one : {to, rank()}) {
      if (!own.can_send_to(one)) cannot_send(to, one, own.gone(one));
    }
    if (to == rank()) {
      own.put({to, tag, Bytes(payload.begin(), payload.end())});
      return;
    }
    if (payload.size() < kLentBytes) {
      core_->send(lane_, to,
                  std::make_shared<TcpOutgoing>(tag, Bytes(payload.begin(), payload.end())));
      return;
    }
    const auto message = std::make_shared<TcpOutgoing>(tag, payload);
    core_->send(lane_, to, message);
    TcpOutgoing::State state = message->wait_until(deadline);
    if (state == TcpOutgoing::State::kQueued) {
      core_->abandon(message);
      state = message->wait();
    }
    if (state == TcpOutgoing::State::kSent) return;
    if (state == TcpOutgoing::State::kLost) cannot_send(to, to, own.gone(to));
    throw PeerError(own.name(rank()) + ": " + own.name(to) + " did not take " +
                    std::to_string(payload.size()) + " bytes within " +
                    seconds_text(seconds_between(start, Clock::now())));
  }

  Message receive(Rank from, Tag tag, Deadline deadline) override {
    check_rank(from);
    return lane_->mailbox.receive(from, tag, deadline);
  }

  std::optional<Message> receive_any(Tag tag, Deadline deadline) override {
    return lane_->mailbox.receive_any(tag, deadline);
  }

  void close() override {
    lane_->mailbox.note_gone(rank());
    core_->close(lane_);
  }

  std::string gone(Rank peer) const override {
    check_rank(peer);
    return lane_->mailbox.gone(peer);
  }

  bool call(Rank peer, const network::Address& address, Deadline deadline) override {
    check_rank(peer);
    COHORT_CHECK(lane_->lane.late && peer != rank(), "who came in time is called");
    std::unique_lock lock(lane_->mutex);
    lane_->missing[peer] = true;
    lane_->refusal.clear();
    core_->call(lane_, peer, address, deadline);
    lane_->changed.wait_until(lock, deadline + kLastWords,
                              [&] { return !lane_->missing[peer] || !lane_->refusal.empty(); });
    const bool reached = !lane_->missing[peer];
    lane_->missing[peer] = false;
    lock.unlock();
    if (reached) readmit(peer);
    return reached;
  }

  Rank call_anyone(const network::Address& address, Deadline deadline) override {
    COHORT_CHECK(lane_->lane.late, "who came in time calls");
    std::unique_lock lock(lane_->mutex);
    lane_->reached = -1;
    lane_->refusal.clear();
    core_->call(lane_, network::kAnyRank, address, deadline);
    lane_->changed.wait_until(lock, deadline + kLastWords,
                              [&] { return lane_->reached >= 0 || !lane_->refusal.empty(); });
    if (!lane_->refusal.empty()) throw ConfigError(lane_->refusal);
    const Rank reached = lane_->reached;
    if (reached < 0) {
      throw PeerError(lane_->mailbox.name(rank()) + " found nobody of this job at " +
                      address.text());
    }
    lock.unlock();
    readmit(reached);
    return reached;
  }

  void readmit(Rank peer) override {
    check_rank(peer);
    lane_->mailbox.readmit(peer);
  }

  std::string introduction(Rank peer) const override {
    check_rank(peer);
    const std::lock_guard lock(lane_->mutex);
    return lane_->introductions[peer];
  }

  void give_up(Rank peer) override {
    if (!gone(peer).empty()) return;
    lane_->mailbox.note_gone(peer, kGivenUp);
    core_->give_up(lane_, peer);
  }

  std::string lost(Rank peer) const override {
    const std::string why = gone(peer);
    return why == kClosed ? "" : why;
  }

 private:
  [[noreturn]] void cannot_send(Rank to, Rank who, const std::string& why) const {
    const Mailbox& own = lane_->mailbox;
    throw PeerError(own.name(rank()) + ": cannot send to " + own.name(to) + ": " + own.name(who) +
                    " " + (why.empty() ? std::string(kClosed) : why));
  }

  std::shared_ptr<TcpCore> core_;
  std::shared_ptr<TcpLaneState> lane_;
};

// Until all members have come. Throws as TcpNode::connect() says.
void wait_for_all(TcpLaneState& lane, Deadline deadline) {
  const auto start = Clock::now();
  const Deadline say_at = start + kTcpSayAfter;
  const Deadline give_up_at = deadline + kLastWords;
  bool said = !lane.lane.waiting;
  std::unique_lock lock(lane.mutex);
  while (!lane.all_there()) {
    if (!lane.refusal.empty()) throw ConfigError(lane.refusal);
    const auto now = Clock::now();
    if (now >= give_up_at) {
      std::string text = lane.mailbox.name(lane.own) + " waited " +
                         seconds_text(seconds_between(start, now)) + " for " +
                         lane.names_of_missing();
      for (std::size_t member = 0; member < lane.missing.size(); ++member) {
        if (lane.missing[member] && !lane.obstacles[member].empty()) {
          text += "; " + lane.obstacles[member];
        }
      }
      throw PeerError(text);
    }
    if (!said && now >= say_at) {
      lane.lane.waiting(lane.names_of_missing());
      said = true;
    }
    lane.changed.wait_until(lock, said ? give_up_at : std::min(say_at, give_up_at));
  }
  lane.starting = false;
}

}  // namespace

TcpNode::TcpNode(const TcpNodeOptions& options) : core_(std::make_shared<TcpCore>(options)) {}
TcpNode::~TcpNode() = default;

const network::Address& TcpNode::address() const { return core_->address(); }

std::unique_ptr<TcpTransport> TcpNode::connect(const TcpLane& lane, Deadline deadline) {
  const auto own = std::find(lane.members.begin(), lane.members.end(), core_->options().rank);
  COHORT_CHECK(own != lane.members.end() && lane.number >= 0 && lane.number < kTcpLanes &&
                   lane.addresses.size() == lane.members.size(),
               "a lane that this process cannot open");
  const auto state =
      std::make_shared<TcpLaneState>(lane, static_cast<Rank>(own - lane.members.begin()));
  auto transport = std::make_unique<LaneTransport>(core_, state);
  core_->open(state, deadline);
  wait_for_all(*state, deadline);
  return transport;
}

bool TcpNode::listen_also(const network::Address& address) { return core_->listen_also(address); }

void TcpNode::admit_nobody(const std::string& why) { core_->admit_nobody(why); }

void TcpNode::stop_listening() { core_->stop_listening(); }

std::vector<std::unique_ptr<Transport>> make_tcp_group(int size) {
  if (size < 1) {
    throw ConfigError("a group needs at least 1 rank, not " + std::to_string(size));
  }
  std::vector<std::unique_ptr<TcpNode>> nodes;
  TcpLane lane;
  TcpNodeOptions options;
  options.job = network::random_job_id();
  options.size = size;
  for (options.rank = 0; options.rank < size; ++options.rank) {
    nodes.push_back(std::make_unique<TcpNode>(options));
    lane.members.push_back(options.rank);
    lane.addresses.push_back(nodes.back()->address());
  }
  std::vector<std::unique_ptr<Transport>> members(size);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        members[rank] = nodes[rank]->connect(lane, deadline_in(std::chrono::seconds(10)));
      } catch (const Error&) {  // shows as a missing member
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& member : members) {
    if (!member) throw RunError("cannot connect a group over loopback");
  }
  return members;
}

}  // namespace cohort::transport
