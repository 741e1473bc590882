#include "launch/tcp_job_hosts.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "collectives/farewell.h"
#include "collectives/over_transport.h"
#include "core/error.h"

namespace cohort::launch {
namespace {

constexpr transport::Tag kStatus = 1;
constexpr transport::Tag kAlarm = 2;
constexpr std::size_t kMessageBytes = std::size_t{8} << 20;
constexpr std::chrono::milliseconds kTellEvery{250};
constexpr std::chrono::milliseconds kCheckHostsEvery{50};
constexpr std::chrono::milliseconds kExplanation{150};
constexpr std::chrono::seconds kAlarmTime{1};

Deadline soon() { return deadline_in(kAlarmTime); }

}  // namespace

// Counts operations, and says of a failed one who is to blame.
class TcpHostChannel final : public collectives::Collectives {
 public:
  TcpHostChannel(std::shared_ptr<TcpHostLinks> links, GroupChannel channel)
      : collectives::Collectives(links->collectives_[channel]->rank(),
                                 links->collectives_[channel]->size()),
        links_(std::move(links)),
        inner_(links_->collectives_[channel]),
        channel_(channel) {}
  ~TcpHostChannel() override {
    if (links_->failure().empty()) links_->lanes_[channel_]->close();
  }

  void all_reduce(std::span<float> values, Deadline deadline) override {
    // In pieces whose messages the allocator keeps for the next, instead of giving them back.
    const std::size_t most = kMessageBytes / sizeof(float) * static_cast<std::size_t>(size());
    watched("all_reduce", deadline, [&] {
      std::size_t begin = 0;
      do {
        const std::size_t count = std::min(most, values.size() - begin);
        inner_->all_reduce(values.subspan(begin, count), deadline);
        begin += count;
      } while (begin < values.size());
    });
  }
  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override {
    std::vector<Bytes> all;
    watched("all_gather", deadline, [&] { all = inner_->all_gather(own, deadline); });
    return all;
  }
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override {
    watched("broadcast", deadline, [&] { inner_->broadcast(bytes, root, deadline); });
  }
  void barrier(Deadline deadline) override {
    watched("barrier", deadline, [&] { inner_->barrier(deadline); });
  }
  void leave(const std::string& reason) override {
    links_->raise_alarm(collectives::farewell(links_->hosts_.names[rank()], reason));
  }
  Traffic traffic() const override { return inner_->traffic(); }

 private:
  template <class Operation>
  void watched(const char* what, Deadline deadline, Operation&& operation) {
    if (const std::string failure = links_->failure(); !failure.empty()) throw PeerError(failure);
    const std::uint64_t number = ++links_->begun_[channel_];
    const auto start = Clock::now();
    try {
      operation();
    } catch (const PeerError& error) {
      std::string text = links_->losses();
      if (!text.empty()) links_->await_failure(2 * kExplanation);  // the watcher may know why
      if (text.empty() && Clock::now() >= deadline) {
        char waited[64];
        std::snprintf(waited, sizeof waited, " has not come to %s in %.1f s", what,
                      seconds_between(start, Clock::now()));
        text = links_->late(channel_, number, waited);
      }
      links_->raise_alarm(text.empty() ? error.what() : text);
      throw PeerError(links_->failure());
    }
  }

  const std::shared_ptr<TcpHostLinks> links_;
  const std::shared_ptr<collectives::Collectives> inner_;
  const GroupChannel channel_;
};

TcpHostLinks::TcpHostLinks(std::array<std::unique_ptr<transport::TcpTransport>, kChannels> lanes,
                           TcpHosts hosts)
    : hosts_(std::move(hosts)), heard_(hosts_.names.size()) {
  for (int channel = 0; channel < kChannels; ++channel) {
    lanes_[channel] = std::move(lanes[channel]);
    collectives_[channel] = std::make_shared<collectives::OverTransport>(lanes_[channel]);
  }
  watcher_ = std::thread([this] { watch(); });
}

std::unique_ptr<collectives::Collectives> TcpHostLinks::channel(GroupChannel channel) {
  return std::make_unique<TcpHostChannel>(shared_from_this(), channel);
}

std::string TcpHostLinks::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void TcpHostLinks::await_failure(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  failed_.wait_for(lock, at_most, [this] { return !failure_.empty(); });
}

bool TcpHostLinks::fail(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return false;
    failure_ = reason;
  }
  failed_.notify_all();
  return true;
}

void TcpHostLinks::raise_alarm(const std::string& reason) {
  if (!fail(reason)) return;
  transport::TcpTransport& lane = *lanes_[kMain];
  for (Rank to = 0; to < lane.size(); ++to) {
    if (to == lane.rank()) continue;
    try {
      lane.send(to, kAlarm, std::as_bytes(std::span(reason)), soon());
    } catch (const PeerError&) {  // it is gone
    }
  }
  // Which also wakes those who wait in an operation.
  for (const auto& channel : collectives_) channel->leave(reason);
}

void TcpHostLinks::stop() {
  ending_ = true;
  const std::lock_guard lock(stopping_);
  if (watcher_.joinable()) watcher_.join();
}

void TcpHostLinks::watch() {
  transport::TcpTransport& lane = *lanes_[kMain];
  Clock::time_point tell_at = {};
  try {
    while (!ending_ && failure().empty()) {
      if (Clock::now() >= tell_at) {
        tell();
        tell_at = Clock::now() + kTellEvery;
      }
      if (const auto alarm = lane.receive_any(kAlarm, deadline_in(kCheckHostsEvery))) {
        return raise_alarm(
            {reinterpret_cast<const char*>(alarm->payload.data()), alarm->payload.size()});
      }
      while (const auto status = lane.try_receive(kStatus)) hear(*status);
      std::string trouble = losses();
      if (trouble.empty() && hosts_.host_failure) trouble = hosts_.host_failure();
      if (trouble.empty()) continue;
      // Who is gone may have gone for a reason that another has told us, and it is on its way.
      if (const auto alarm = lane.receive_any(kAlarm, deadline_in(kExplanation))) {
        trouble.assign(reinterpret_cast<const char*>(alarm->payload.data()), alarm->payload.size());
      }
      return raise_alarm(trouble);
    }
  } catch (const PeerError&) {
    // This process has closed the lane: nobody listens any more.
  }
}

std::string TcpHostLinks::own_activities() const {
  if (hosts_.activities.size() == 1) return hosts_.activities.front()->text();
  std::string text;
  for (std::size_t i = 0; i < hosts_.activities.size(); ++i) {
    text += (i == 0 ? "" : "; ") + ("rank " + std::to_string(hosts_.ranks[i])) + " " +
            hosts_.activities[i]->text();
  }
  return text;
}

void TcpHostLinks::tell() {
  transport::TcpTransport& lane = *lanes_[kMain];
  std::array<std::uint64_t, kChannels> begun{};
  for (int channel = 0; channel < kChannels; ++channel) begun[channel] = begun_[channel].load();
  const auto head = std::as_bytes(std::span(begun));
  const std::string text = own_activities();
  Bytes message(head.begin(), head.end());
  const auto tail = std::as_bytes(std::span(text));
  message.insert(message.end(), tail.begin(), tail.end());
  for (Rank to = 0; to < lane.size(); ++to) {
    if (to == lane.rank()) continue;
    try {
      lane.send(to, kStatus, message, soon());
    } catch (const PeerError&) {  // losses() tells whether that is one
    }
  }
}

void TcpHostLinks::hear(const transport::Message& message) {
  Heard heard;
  if (message.payload.size() < sizeof heard.begun) return;
  std::memcpy(heard.begun.data(), message.payload.data(), sizeof heard.begun);
  heard.activities.assign(
      reinterpret_cast<const char*>(message.payload.data()) + sizeof heard.begun,
      message.payload.size() - sizeof heard.begun);
  const std::lock_guard lock(mutex_);
  heard_[message.from] = std::move(heard);
}

std::string TcpHostLinks::losses() const {
  std::string text;
  const std::lock_guard lock(mutex_);
  for (Rank host = 0; host < static_cast<Rank>(heard_.size()); ++host) {
    for (const auto& lane : lanes_) {
      const std::string why = lane->lost(host);
      if (why.empty()) continue;
      text += (text.empty() ? "" : "; ") + hosts_.names[host] + " " + why + "; last heard " +
              heard_[host].activities;
      break;
    }
  }
  return text;
}

std::string TcpHostLinks::late(GroupChannel channel, std::uint64_t operation,
                               const std::string& what) const {
  std::string text;
  const std::lock_guard lock(mutex_);
  for (Rank host = 0; host < static_cast<Rank>(heard_.size()); ++host) {
    if (host == lanes_[channel]->rank() || heard_[host].begun[channel] >= operation) continue;
    text += (text.empty() ? "" : "; ") + hosts_.names[host] + what + "; last heard " +
            heard_[host].activities;
  }
  return text;
}

}  // namespace cohort::launch
