#include "collectives/mpi_heartbeat.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "collectives/farewell.h"
#include "collectives/mpi_calls.h"
#include "core/error.h"

namespace cohort::collectives {
namespace {

constexpr std::chrono::milliseconds kHeartbeatInterval{250};
constexpr int kHeartbeatTag = 1;
constexpr int kAlarmTag = 2;
constexpr std::size_t kLongestAlarm = 1000;

// A heartbeat says first how many operations the member has begun on each channel, then of each
// rank what it is doing:
struct Pulse {
  std::int64_t step = 0;
  std::uint64_t phase = 0;
};

}  // namespace

MpiHeartbeat::MpiHeartbeat(MPI_Comm communicator, MpiMembers members)
    : communicator_(communicator), members_(std::move(members)) {
  check_mpi(MPI_Comm_rank(communicator_, &own_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
  COHORT_CHECK(members_.ranks.size() == static_cast<std::size_t>(size_) &&
                   members_.hosts.size() == members_.ranks.size() &&
                   members_.activities.size() == members_.ranks[own_].size(),
               "every member is described");
  heard_.resize(size_);
  for (int member = 0; member < size_; ++member) {
    heard_[member].activities = std::vector<Activity>(members_.ranks[member].size());
  }
  listener_ = std::thread([this] { listen(); });
}

std::string MpiHeartbeat::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void MpiHeartbeat::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = reason;
  failed_.store(true, std::memory_order_release);
}

void MpiHeartbeat::raise_alarm(const std::string& reason) {
  if (failed() || size_ == 1) return fail(reason);
  // MPI reads the text when it will; the memory is its for good.
  auto* text = new std::string(reason.substr(0, kLongestAlarm));
  std::vector<MPI_Request> requests;
  for (int to = 0; to < size_; ++to) {
    if (to == own_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(text->data(), static_cast<int>(text->size()), MPI_BYTE, to, kAlarmTag, communicator_,
              &request);
    requests.push_back(request);
  }
  // A moment for the text to leave; who does not take it now learns from this member's silence.
  const Deadline moment = deadline_in(std::chrono::milliseconds(200));
  int complete = 0;
  while (complete == 0 && Clock::now() < moment) {
    if (MPI_Testall(static_cast<int>(requests.size()), requests.data(), &complete,
                    MPI_STATUSES_IGNORE) != MPI_SUCCESS) {
      break;
    }
    if (complete == 0) sched_yield();
  }
  fail(reason);
}

void MpiHeartbeat::look_up() {
  if (!failed() && members_.host_failure) {
    const std::string reason = members_.host_failure();
    if (!reason.empty()) raise_alarm(reason);
  }
  if (!failed()) take_alarm();
  if (failed()) throw PeerError(failure());
}

bool MpiHeartbeat::missed(int member, int channel, std::uint64_t operation) const {
  const std::lock_guard lock(mutex_);
  return heard_[member].begun[channel] < operation;
}

std::string MpiHeartbeat::name(int member) const {
  return list_of(members_.ranks[member]) + " on " + members_.hosts[member];
}

std::string MpiHeartbeat::activities(int member) const {
  const std::lock_guard lock(mutex_);
  const auto& ranks = members_.ranks[member];
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks.size() > 1) text += (i == 0 ? "rank " : ", rank ") + std::to_string(ranks[i]) + " ";
    text += heard_[member].activities[i].text();
  }
  return text;
}

void MpiHeartbeat::stop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (listener_.joinable()) listener_.join();
}

// One thread takes alarms at a time, so that none is probed twice.
void MpiHeartbeat::take_alarm() {
  const std::unique_lock lock(probing_, std::try_to_lock);
  if (!lock) return;
  int found = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, kAlarmTag, communicator_, &found, &status) != MPI_SUCCESS ||
      found == 0) {
    return;
  }
  int length = 0;
  MPI_Get_count(&status, MPI_BYTE, &length);
  std::string text(static_cast<std::size_t>(std::max(0, length)), '\0');
  if (MPI_Recv(text.data(), length, MPI_BYTE, status.MPI_SOURCE, kAlarmTag, communicator_,
               MPI_STATUS_IGNORE) == MPI_SUCCESS) {
    fail(text);
  }
}

void MpiHeartbeat::listen() {
  std::vector<Bytes> outgoing(size_);
  std::vector<MPI_Request> requests(size_, MPI_REQUEST_NULL);
  auto last = Clock::now();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kHeartbeatInterval, [&] { return ending_; })) {
    lock.unlock();
    const auto now = Clock::now();
    // When this process was stopped itself, the time it missed says nothing of the others.
    const auto passed = std::min(std::chrono::duration_cast<std::chrono::milliseconds>(now - last),
                                 2 * kHeartbeatInterval);
    last = now;
    try {
      look_up();
      for (int to = 0; to < size_; ++to) tell(to, outgoing[to], requests[to]);
      hear(passed);
    } catch (const PeerError& error) {
      fail(error.what());
      for (auto& buffer : outgoing) new Bytes(std::move(buffer));  // still MPI's
      return;
    }
    lock.lock();
  }
  lock.unlock();
  part(outgoing, requests);
}

void MpiHeartbeat::tell(int to, Bytes& buffer, MPI_Request& request) {
  if (to == own_) return;
  int complete = 0;
  check_mpi(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
  if (complete == 0) return;  // it has not taken the last one yet
  buffer.resize(sizeof(Begun) + members_.activities.size() * sizeof(Pulse));
  Begun begun{};
  for (int channel = 0; channel < kMaxChannels; ++channel) begun[channel] = begun_[channel];
  std::memcpy(buffer.data(), begun.data(), sizeof begun);
  for (std::size_t i = 0; i < members_.activities.size(); ++i) {
    const Activity& activity = *members_.activities[i];
    const Pulse pulse{activity.step(), static_cast<std::uint64_t>(activity.phase())};
    std::memcpy(buffer.data() + sizeof begun + i * sizeof pulse, &pulse, sizeof pulse);
  }
  check_mpi(MPI_Isend(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, to, kHeartbeatTag,
                      communicator_, &request),
            "MPI_Isend");
}

void MpiHeartbeat::hear(std::chrono::milliseconds passed) {
  for (int from = 0; from < size_; ++from) {
    if (from == own_) continue;
    Heard& heard = heard_[from];
    heard.silent += passed;
    while (hear_one(from, heard)) heard.silent = decltype(passed){0};
    if (heard.silent < members_.silence || !heard.anything) continue;
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f s",
                  std::chrono::duration<double>(heard.silent).count());
    raise_alarm(name(from) + (members_.ranks[from].size() == 1 ? " has" : " have") +
                " not answered for " + seconds + "; last heard " + activities(from));
    throw PeerError(failure());
  }
}

bool MpiHeartbeat::hear_one(int from, Heard& heard) {
  int found = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(from, kHeartbeatTag, communicator_, &found, &status), "MPI_Iprobe");
  if (found == 0) return false;
  int length = 0;
  MPI_Get_count(&status, MPI_BYTE, &length);
  Bytes bytes(static_cast<std::size_t>(std::max(0, length)));
  check_mpi(MPI_Recv(bytes.data(), length, MPI_BYTE, from, kHeartbeatTag, communicator_,
                     MPI_STATUS_IGNORE),
            "MPI_Recv");
  if (bytes.size() < sizeof(Begun)) return true;
  const std::lock_guard lock(mutex_);
  std::memcpy(heard.begun.data(), bytes.data(), sizeof(Begun));
  const std::size_t count =
      std::min((bytes.size() - sizeof(Begun)) / sizeof(Pulse), heard.activities.size());
  for (std::size_t i = 0; i < count; ++i) {
    Pulse pulse;
    std::memcpy(&pulse, bytes.data() + sizeof(Begun) + i * sizeof pulse, sizeof pulse);
    heard.activities[i].set(pulse.step, static_cast<Phase>(pulse.phase));
  }
  heard.anything = true;
  return true;
}

// Waits a moment until the others have taken the last messages, so that none is left over.
void MpiHeartbeat::part(std::vector<Bytes>& outgoing, std::vector<MPI_Request>& requests) const {
  const Deadline moment = deadline_in(std::chrono::milliseconds(500));
  int complete = 0;
  while (complete == 0 && Clock::now() < moment && !failed()) {
    if (MPI_Testall(size_, requests.data(), &complete, MPI_STATUSES_IGNORE) != MPI_SUCCESS) break;
    if (complete == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (complete == 0) {
    for (auto& buffer : outgoing) new Bytes(std::move(buffer));
  }
}

}  // namespace cohort::collectives
