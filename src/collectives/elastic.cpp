#include "collectives/elastic.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/farewell.h"
#include "core/error.h"

namespace cohort::collectives {
namespace {

constexpr std::chrono::milliseconds kLook{50};  // after which it is seen who is lost
constexpr std::chrono::seconds kSoon{1};        // for what is said beside the operations

[[noreturn]] void throw_end(const membership::ElasticGroup::End& end, bool later) {
  if (end.cut_off) throw CutOffError(end.reason);
  throw PeerError((later ? "the group is broken since: " : "") + end.reason);
}

}  // namespace

ElasticCollectives::ElasticCollectives(transport::Transport& transport, ElasticOptions options,
                                       std::optional<Rank> entered)
    : Collectives(transport.rank(), transport.size()),
      transport_(transport),
      options_(std::move(options)),
      answered_by_(entered.value_or(0)),
      present_(static_cast<std::size_t>(size()), !entered),
      group_(rank(), size(), *this, entered) {
  thread_ = std::thread([this] { serve(); });
}

ElasticCollectives::~ElasticCollectives() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  thread_.join();
}

int ElasticCollectives::present() const {
  return static_cast<int>(std::count(present_.begin(), present_.end(), true));
}

void ElasticCollectives::all_reduce(std::span<float> values, Deadline deadline) {
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    std::vector<float> sums(values.size());
    std::vector<float> part(values.size());
    for (const auto& [rank, bytes] : parts) {
      if (bytes.size() != values.size_bytes()) {
        throw PeerError(list_of({rank}) + " sent " + std::to_string(bytes.size()) +
                        " bytes in a sum of " + std::to_string(values.size_bytes()));
      }
      if (!bytes.empty()) std::memcpy(part.data(), bytes.data(), bytes.size());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
    }
    const auto total = std::as_bytes(std::span(sums));
    return membership::ElasticGroup::Combined{{total.begin(), total.end()}};
  };
  const Bytes sum = operate(std::as_bytes(values), combine, deadline);
  if (sum.size() != values.size_bytes()) {
    throw PeerError(list_of({leader()}) + " sent a sum of another length");
  }
  if (!sum.empty()) std::memcpy(values.data(), sum.data(), sum.size());
}

std::vector<Bytes> ElasticCollectives::all_gather(std::span<const std::byte> own,
                                                  Deadline deadline) {
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    return membership::ElasticGroup::Combined{membership::encode_table(parts, size())};
  };
  return membership::read_table(operate(own, combine, deadline), size());
}

void ElasticCollectives::broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) {
  COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    const auto part = parts.find(root);
    return membership::ElasticGroup::Combined{part == parts.end() ? Bytes() : part->second};
  };
  const std::span<const std::byte> own = rank() == root ? bytes : std::span<std::byte>();
  const Bytes result = operate(own, combine, deadline);
  if (result.size() != bytes.size()) {
    throw PeerError(list_of({root}) + " is not there, or has " + std::to_string(result.size()) +
                    " bytes to tell instead of " + std::to_string(bytes.size()));
  }
  if (!result.empty()) std::memcpy(bytes.data(), result.data(), result.size());
}

void ElasticCollectives::barrier(Deadline deadline) {
  operate(
      {}, [](const auto&) { return membership::ElasticGroup::Combined(); }, deadline);
}

ElasticCollectives::Agreement ElasticCollectives::agree(bool mine, std::int64_t number,
                                                        Deadline deadline) {
  const std::int64_t own[2] = {mine ? 1 : 0, number};
  const auto combine = [&](const std::map<Rank, Bytes>& parts) {
    std::int64_t all[2] = {0, number};
    for (const auto& [rank, bytes] : parts) {
      if (bytes.size() != sizeof own)
        throw PeerError(list_of({rank}) + " was asked something else");
      std::int64_t theirs[2];
      std::memcpy(theirs, bytes.data(), sizeof theirs);
      all[0] += theirs[0];
    }
    const auto result = std::as_bytes(std::span(all));
    // Nobody is let in who would have to leave at once.
    return membership::ElasticGroup::Combined{{result.begin(), result.end()}, all[0] == 0};
  };
  const Bytes result = operate(std::as_bytes(std::span(own)), combine, deadline);
  std::int64_t all[2] = {0, 0};
  if (result.size() != sizeof all)
    throw PeerError(list_of({leader()}) + " was asked something else");
  std::memcpy(all, result.data(), sizeof all);
  return {all[0] > 0, all[1], joined_};
}

void ElasticCollectives::send(Rank to, Bytes message) {
  outgoing_.push_back({to, std::move(message)});
}

void ElasticCollectives::give_up(Rank rank, Bytes last_word) {
  outgoing_.push_back({rank, std::move(last_word), true});
}

bool ElasticCollectives::readmit(Rank rank) {
  transport_.readmit(rank);
  return transport_.gone(rank).empty();
}

std::optional<bool> ElasticCollectives::has_ended(Rank rank) {
  if (!options_.has_ended) return std::nullopt;
  return options_.has_ended(rank);
}

std::string ElasticCollectives::introduce(Rank rank, const std::string& text) {
  return options_.introduce ? options_.introduce(rank, text) : "";
}

void ElasticCollectives::leads() {
  if (options_.leads) options_.leads();
}

Bytes ElasticCollectives::operate(std::span<const std::byte> own,
                                  membership::ElasticGroup::Combine combine, Deadline deadline) {
  Lock lock(mutex_);
  if (group_.end()) throw_end(*group_.end(), /*later=*/true);
  const std::uint64_t operation = group_.answered() + 1;
  send_until_ = deadline;
  group_.contribute({own.begin(), own.end()}, std::move(combine), Clock::now());
  wait_for(lock, deadline, [&] { return group_.answered() >= operation; });
  const auto result = group_.answer().result;
  Bytes copy(result.begin(), result.end());
  take_answer(lock);
  return copy;
}

// Or throws, when the group ends before.
template <class Done>
void ElasticCollectives::wait_for(Lock& lock, Deadline deadline, Done done) {
  flush(lock);
  // What this rank has to say goes out first: it may be its last operation.
  changed_.wait_until(lock, deadline,
                      [&] { return (done() || group_.end()) && outgoing_.empty() && !flushing_; });
  if (!done() && !group_.end()) {
    group_.run_out_of_patience();
    flush(lock);
  }
  if (!done()) throw_end(*group_.end(), /*later=*/false);
}

void ElasticCollectives::take_answer(Lock& lock) {
  const membership::ElasticAnswer answer = group_.answer();
  lock.unlock();
  answered_by_ = answer.leader;
  present_ = answer.present;
  joined_.clear();
  for (const auto& [rank, text] : answer.joined) {
    joined_.push_back(rank);
    if (options_.joined) options_.joined(rank, text);
  }
}

void ElasticCollectives::serve() {
  try {
    Deadline look_at = Clock::now();
    while (true) {
      const auto message = transport_.receive_any(kElasticTag, look_at);
      Lock lock(mutex_);
      if (stopping_) return;
      if (message) hear(*message);
      if (Clock::now() >= look_at) {
        look_for_lost();
        group_.on_tick(Clock::now());
        look_at = deadline_in(kLook);
      }
      flush(lock);
      changed_.notify_all();
    }
  } catch (const PeerError& error) {  // this rank has left
    const std::lock_guard lock(mutex_);
    group_.leave(error.what());
    outgoing_.clear();
  }
  changed_.notify_all();
}

void ElasticCollectives::hear(const transport::Message& message) {
  received_ += message.payload.size();
  group_.on_message(message.from, message.payload, Clock::now());
}

void ElasticCollectives::look_for_lost() {
  std::vector<Rank> lost;
  for (Rank other = 0; other < size(); ++other) {
    if (other != rank() && group_.reaches(other) && !transport_.gone(other).empty()) {
      lost.push_back(other);
    }
  }
  // What they sent before they went.
  while (!lost.empty()) {
    const auto message = transport_.try_receive(kElasticTag);
    if (!message) break;
    hear(*message);
  }
  for (const Rank other : lost) group_.on_lost(other, transport_.gone(other), Clock::now());
}

void ElasticCollectives::flush(Lock& lock) {
  if (std::exchange(flushing_, true)) return;  // the other thread takes these too
  while (!outgoing_.empty()) {
    const Outgoing one = std::move(outgoing_.front());
    outgoing_.pop_front();
    const Deadline deadline = std::max(send_until_, deadline_in(kSoon));
    lock.unlock();
    std::string failure;
    try {
      carry(one, deadline);
    } catch (const PeerError& error) {
      failure = error.what();
    }
    lock.lock();
    if (!failure.empty()) group_.leave(failure);
  }
  flushing_ = false;
  changed_.notify_all();
}

void ElasticCollectives::carry(const Outgoing& one, Deadline deadline) {
  const bool was_gone = !transport_.gone(one.to).empty();
  if (one.last && was_gone) return;  // who is back has nothing to do with it
  try {
    if (!one.message.empty()) transport_.send(one.to, kElasticTag, one.message, deadline);
    sent_ += one.message.size();
  } catch (const PeerError&) {
    if (!transport_.gone(rank()).empty()) return;             // this rank has left
    if (transport_.gone(one.to).empty() && !one.last) throw;  // it is there, but slow
  }
  if (one.last) transport_.give_up(one.to);
}

void ElasticCollectives::welcome(Rank rank, std::span<const std::byte> entry, Deadline deadline) {
  Lock lock(mutex_);
  send_until_ = deadline;
  group_.welcome(rank, entry);
  flush(lock);
}

Bytes ElasticCollectives::enter(Deadline deadline) {
  Lock lock(mutex_);
  group_.enter();
  wait_for(lock, deadline, [&] { return group_.entry().has_value(); });
  Bytes entry = *group_.entry();
  take_answer(lock);
  return entry;
}

void ElasticCollectives::leave(const std::string& reason) {
  Lock lock(mutex_);
  if (group_.end()) return;
  send_until_ = {};
  group_.leave(farewell(list_of({rank()}), reason));
  flush(lock);
  changed_.wait_until(lock, deadline_in(kSoon), [&] { return !flushing_; });
  lock.unlock();
  transport_.close();
}

std::string introduce_to(transport::Transport& transport, Rank leader, const std::string& own,
                         std::vector<bool>& present, Deadline deadline) {
  transport::Message message;
  try {
    transport.send(
        leader, kElasticTag,
        membership::elastic_message(membership::ElasticKind::kReturn, 0, membership::bytes_of(own)),
        deadline);
    membership::ElasticKind kind = membership::ElasticKind::kReturn;
    // What its predecessor was to get may still come.
    while (kind != membership::ElasticKind::kIntroduction &&
           kind != membership::ElasticKind::kFarewell) {
      message = transport.receive(leader, kElasticTag, deadline);
      kind = membership::read_elastic(leader, message.payload).header.kind;
    }
  } catch (const PeerError&) {
    const std::string why = transport.gone(leader);
    if (why.empty()) throw;
    throw CutOffError(list_of({transport.rank()}) +
                      " is cut off from the others: " + list_of({leader}) + " " + why);
  }
  const auto [header, payload] = membership::read_elastic(leader, message.payload);
  if (header.kind == membership::ElasticKind::kFarewell)
    throw PeerError(membership::text_of(payload));
  const membership::ElasticAnswer answer = membership::read_answer(payload, transport.size());
  present = answer.present;
  return membership::text_of(answer.result);
}

}  // namespace cohort::collectives
