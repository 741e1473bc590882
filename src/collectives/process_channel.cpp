#include "collectives/process_channel.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "collectives/chunks.h"
#include "collectives/farewell.h"
#include "collectives/peer_memory.h"
#include "collectives/sum.h"
#include "core/error.h"

namespace cohort::collectives {

using process_layout::Arrival, process_layout::copy_out_to, process_layout::kChoiceBytes,
    process_layout::kChunkBytes, process_layout::kChunkFloats, process_layout::kDirectBytes,
    process_layout::kDirectRoom, process_layout::Kind, process_layout::kind_name,
    process_layout::kMaxGathered, process_layout::kNoRefusal, process_layout::kStaged,
    process_layout::kStreamBytes, process_layout::kStreamed, process_layout::kTimedEvery,
    process_layout::part_of;

ProcessChannel::ProcessChannel(std::shared_ptr<SharedByProcesses> shared, int channel)
    : Collectives(shared->own(), shared->layout().size()),
      shared_(std::move(shared)),
      layout_(shared_->layout()),
      channel_(channel),
      memory_(shared_->memory(channel)),
      inputs_(size()) {}

ProcessChannel::~ProcessChannel() {
  fail(shared_->board().ranks(rank()) + " has left the group", true);
}

void ProcessChannel::leave(const std::string& reason) {
  fail(farewell(shared_->board().ranks(rank()), reason));
}

void ProcessChannel::begin(Kind kind, std::size_t bytes, Rank root, Deadline deadline,
                           std::uint64_t address) {
  if (head().barrier.broken()) throw PeerError(head().note.read());
  Arrival& own = arrival(rank());
  own.kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
  own.bytes.store(bytes, std::memory_order_relaxed);
  own.root.store(root, std::memory_order_relaxed);
  own.address.store(address, std::memory_order_relaxed);
  seat(rank()).presence.announce(operation_, true);
  for (int member = 0; member < size(); ++member) {
    if (member == rank()) continue;
    const auto [outcome, slept] =
        seat(member).presence.await(operation_, head().barrier, shared_->patience(), deadline);
    if (outcome == Barrier::Outcome::kMet) continue;
    if (outcome == Barrier::Outcome::kLate) {
      fail(missing(kind, slept,
                   [&](int other) { return seat(other).presence.announced(operation_); }));
    }
    throw PeerError(head().note.read());
  }
  const std::string mismatch = find_mismatch();
  if (mismatch.empty()) return;
  fail(mismatch);
  throw PeerError(head().note.read());
}

void ProcessChannel::fail(const std::string& reason, bool orderly) {
  shared_->fail(channel_, reason, orderly);
}

void ProcessChannel::meet(Kind kind, Deadline deadline) {
  Barrier& barrier = head().barrier;
  const std::uint32_t number = barrier.held();
  seat(rank()).awaited.store(number + 1, std::memory_order_release);
  const auto [outcome, slept] = barrier.meet(size(), shared_->patience(), deadline);
  if (outcome == Barrier::Outcome::kMet) return;
  if (outcome == Barrier::Outcome::kLate) {
    fail(missing(kind, slept, [&](int other) {
      return seat(other).awaited.load(std::memory_order_acquire) == number + 1;
    }));
  }
  throw PeerError(head().note.read());
}

std::string ProcessChannel::find_mismatch() const {
  const Arrival& first = arrival(0);
  const std::uint32_t kind = first.kind.load(std::memory_order_relaxed);
  for (int member = 1; member < size(); ++member) {
    const Arrival& other = arrival(member);
    const auto who = [&] { return shared_->board().name(member); };
    const auto reference = [&] { return shared_->board().name(0); };
    if (other.kind.load(std::memory_order_relaxed) != kind) {
      return who() + " called " + kind_name(other.kind.load()) + " while " + reference() +
             " called " + kind_name(kind);
    }
    if (kind != static_cast<std::uint32_t>(Kind::kAllGather) &&
        other.bytes.load(std::memory_order_relaxed) != first.bytes.load()) {
      return who() + " brought " + std::to_string(other.bytes.load()) + " bytes to " +
             kind_name(kind) + ", " + reference() + " brought " +
             std::to_string(first.bytes.load());
    }
    if (other.root.load(std::memory_order_relaxed) != first.root.load()) {
      return who() + " and " + reference() + " name different roots";
    }
  }
  return "";
}

std::string ProcessChannel::missing(Kind kind, double waited,
                                    const std::function<bool(int)>& come) const {
  char duration[32];
  std::snprintf(duration, sizeof duration, "%.1f s", waited);
  std::string text;
  for (int member = 0; member < size(); ++member) {
    if (come(member)) continue;
    text += (text.empty() ? "" : "; ") + shared_->board().name(member) + " has not come to " +
            kind_name(static_cast<std::uint32_t>(kind)) + " in " + duration + "; it was " +
            shared_->board().activities(member);
  }
  return text.empty() ? "an operation took longer than " + std::string(duration) : text;
}

void ProcessChannel::all_reduce(std::span<float> values, Deadline deadline) {
  ++operation_;
  if (values.size_bytes() <= kSmallBytes || size() == 1) {
    small_all_reduce(values, deadline);
  } else if (values.size_bytes() < kChoiceBytes) {
    staged_all_reduce(values, {.streamed = true, .begun = false}, deadline);
  } else {
    long_all_reduce(values, deadline);
  }
}

void ProcessChannel::long_all_reduce(std::span<float> values, Deadline deadline) {
  // Member 0 chooses for all by what it gives for an address. The sums have the same bits whatever
  // the way.
  const bool direct_possible = values.size_bytes() >= kDirectBytes && shared_->can_read_others();
  const int chosen = rank() == 0 ? ways_.choose(values.size_bytes(), direct_possible ? 3 : 2) : 0;
  std::uint64_t address = direct_possible ? reinterpret_cast<std::uint64_t>(values.data()) : 0;
  if (rank() == 0 && chosen < static_cast<int>(kNoRefusal)) address = chosen;
  begin(Kind::kAllReduce, values.size_bytes(), 0, deadline, address);
  const auto start = Clock::now();
  if (all_gave_addresses()) {
    direct_all_reduce(values, deadline);
  } else {
    const bool streamed = arrival(0).address.load(std::memory_order_relaxed) == kStreamed;
    staged_all_reduce(values, {.streamed = streamed, .begun = true}, deadline);
  }
  if (rank() == 0) ways_.took(values.size_bytes(), chosen, seconds_between(start, Clock::now()));
}

bool ProcessChannel::all_gave_addresses() const {
  for (int member = 0; member < size(); ++member) {
    if (arrival(member).address.load(std::memory_order_relaxed) < kNoRefusal) return false;
  }
  return true;
}

void ProcessChannel::direct_all_reduce(std::span<float> values, Deadline deadline) {
  const auto numel = static_cast<std::int64_t>(values.size());
  const Range own = part_of(numel, size(), rank());
  const std::int64_t others = size() - 1;
  constexpr std::int64_t kRoom = kDirectRoom / sizeof(float);
  const std::int64_t block = std::max<std::int64_t>(kRoom / others, 4096);
  room_.resize(block * others);
  for (std::int64_t begin = own.begin; begin < own.end(); begin += block) {
    const std::int64_t count = std::min(block, own.end() - begin);
    float* next = room_.data();
    for (int from = 0; from < size(); ++from) {
      inputs_[from] = values.data() + begin;
      if (from == rank()) continue;
      read(from, begin, {next, static_cast<std::size_t>(count)});
      inputs_[from] = next;
      next += count;
    }
    sum_in_order(inputs_, values.data() + begin, count);
  }
  meet(Kind::kAllReduce, deadline);
  for (int i = 1; i < size(); ++i) {
    const int from = (rank() + i) % size();
    const Range part = part_of(numel, size(), from);
    read(from, part.begin, values.subspan(part.begin, part.size));
  }
  const std::uint64_t moved = (own.size * others + numel - own.size) * sizeof(float);
  count(moved, moved);
  // Nobody may change its buffer while another reads it.
  meet(Kind::kAllReduce, deadline);
}

void ProcessChannel::read(int from, std::size_t offset, std::span<float> out) {
  const std::uint64_t address = arrival(from).address.load(std::memory_order_relaxed);
  if (read_peer_memory(static_cast<pid_t>(shared_->board().pid(from)),
                       address + offset * sizeof(float), out.data(), out.size_bytes())) {
    return;
  }
  // Its process is gone, or has given the operation up: whoever knows more is given the time to
  // say.
  if (!head().barrier.broken()) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  fail(shared_->board().name(from) + " is gone; it was " + shared_->board().activities(from));
  throw PeerError(head().note.read());
}

void ProcessChannel::small_all_reduce(std::span<float> values, Deadline deadline) {
  const bool choice = values.size_bytes() >= kStreamBytes;  // whether it matters how it is written
  // Reading the clock takes as long as a tenth of such a sum.
  const bool timed = choice && rank() == 0 && operation_ % kTimedEvery == 0;
  const auto start = timed ? Clock::now() : Clock::time_point();
  const bool streamed = choice && small_streamed_;
  if (size() > 1 && !values.empty()) {
    copy_out_to(floats(layout_.small(rank(), operation_)), values, streamed);
  }
  // Member 0 says how all are to write the next one.
  begin(Kind::kAllReduce, values.size_bytes(), 0, deadline,
        small_next_streamed_ ? kStreamed : kStaged);
  if (size() == 1) return;
  if (choice) small_streamed_ = arrival(0).address.load(std::memory_order_relaxed) == kStreamed;
  // The own input from where it was: the others are reading the copy, line by line.
  for (int from = 0; from < size(); ++from) {
    inputs_[from] = from == rank() ? values.data() : floats(layout_.small(from, operation_));
  }
  sum_in_order(inputs_, values.data(), static_cast<std::int64_t>(values.size()));
  count(values.size_bytes() * (size() - 1), values.size_bytes() * (size() - 1));
  if (!timed) return;
  small_ways_.took(kStreamBytes, streamed ? 1 : 0,
                   seconds_between(start, Clock::now()) / static_cast<double>(values.size_bytes()));
  small_next_streamed_ = small_ways_.choose(kStreamBytes, 2) == 1;
}

void ProcessChannel::staged_all_reduce(std::span<float> values, Staging staging,
                                       Deadline deadline) {
  const auto numel = static_cast<std::int64_t>(values.size());
  const auto chunks = static_cast<int>((numel + kChunkFloats - 1) / kChunkFloats);
  const auto chunk = [&](int index) {
    const Range range = chunk_of(numel, chunks, index);
    return values.subspan(range.begin, range.size);
  };
  copy_in(chunk(0), turn_, staging.streamed);
  if (staging.begun) {
    meet(Kind::kAllReduce, deadline);
  } else {
    begin(Kind::kAllReduce, values.size_bytes(), 0, deadline);
  }
  // Between two barriers: what the others copied in before the first can be summed, what they
  // summed before it can be copied out, and what nobody has read since may be written.
  for (int i = 0; i < chunks; ++i) {
    sum(chunk(i), turn_ + i, staging.streamed);
    if (i + 1 < chunks) copy_in(chunk(i + 1), turn_ + i + 1, staging.streamed);
    if (i > 0) copy_out(chunk(i - 1), turn_ + i - 1);
    meet(Kind::kAllReduce, deadline);
  }
  copy_out(chunk(chunks - 1), turn_ + chunks - 1);
  turn_ += chunks;
}

void ProcessChannel::copy_in(std::span<float> chunk, std::uint64_t turn, bool streamed) {
  const Range own = part_of(static_cast<std::int64_t>(chunk.size()), size(), rank());
  float* slot = floats(layout_.slot(rank(), turn));
  const auto end = static_cast<std::size_t>(own.end());
  copy_out_to(slot, chunk.first(own.begin), streamed);
  copy_out_to(slot + end, chunk.subspan(end), streamed);
  count((chunk.size() - own.size) * sizeof(float), 0);
}

void ProcessChannel::sum(std::span<float> chunk, std::uint64_t turn, bool streamed) {
  const Range own = part_of(static_cast<std::int64_t>(chunk.size()), size(), rank());
  for (int from = 0; from < size(); ++from) {
    inputs_[from] =
        from == rank() ? chunk.data() + own.begin : floats(layout_.slot(from, turn)) + own.begin;
  }
  float* result = floats(layout_.result(turn)) + own.begin;
  if (streamed) {
    sum_past_caches(inputs_, chunk.data() + own.begin, result, own.size);
  } else {
    sum_in_order(inputs_, chunk.data() + own.begin, result, own.size);
  }
  const std::uint64_t moved = own.size * (size() - 1) * sizeof(float);
  count(moved, moved);
}

void ProcessChannel::copy_out(std::span<float> chunk, std::uint64_t turn) {
  const Range own = part_of(static_cast<std::int64_t>(chunk.size()), size(), rank());
  const float* result = floats(layout_.result(turn));
  const auto end = static_cast<std::size_t>(own.end());
  std::memcpy(chunk.data(), result, own.begin * sizeof(float));
  std::memcpy(chunk.data() + end, result + end, (chunk.size() - end) * sizeof(float));
  count(0, (chunk.size() - own.size) * sizeof(float));
}

std::vector<Bytes> ProcessChannel::all_gather(std::span<const std::byte> own, Deadline deadline) {
  const auto piece_of = [](std::size_t bytes, std::size_t begin) {
    return std::min(kChunkBytes, bytes - std::min(bytes, begin));
  };
  // The first pieces go along with the lengths.
  const auto put = [&](std::size_t begin) {
    const std::size_t piece = piece_of(own.size(), begin);
    if (piece > 0) std::memcpy(memory_ + layout_.slot(rank(), turn_), own.data() + begin, piece);
  };
  put(0);
  ++operation_;
  begin(Kind::kAllGather, own.size(), 0, deadline);
  std::vector<Bytes> all(size());
  std::size_t longest = 0;
  std::uint64_t total = 0;
  for (int from = 0; from < size(); ++from) {
    const std::size_t bytes = arrival(from).bytes.load(std::memory_order_relaxed);
    if (bytes > kMaxGathered) {
      fail(shared_->board().name(from) + " announced a length that cannot be");
      throw PeerError(head().note.read());
    }
    all[from].resize(bytes);
    longest = std::max(longest, bytes);
    total += bytes;
  }
  for (std::size_t begin = 0;; begin += kChunkBytes) {
    for (int from = 0; from < size(); ++from) {
      const std::size_t piece = piece_of(all[from].size(), begin);
      if (piece > 0) {
        std::memcpy(all[from].data() + begin, memory_ + layout_.slot(from, turn_), piece);
      }
    }
    ++turn_;
    if (begin + kChunkBytes >= longest) break;
    put(begin + kChunkBytes);
    meet(Kind::kAllGather, deadline);
  }
  count(own.size() * (size() - 1), total - own.size());
  return all;
}

void ProcessChannel::broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) {
  COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
  ++operation_;
  for (std::size_t begin = 0; begin == 0 || begin < bytes.size(); begin += kChunkBytes) {
    const auto piece = bytes.subspan(begin, std::min(kChunkBytes, bytes.size() - begin));
    std::byte* slot = memory_ + layout_.slot(root, turn_);
    if (rank() == root && !piece.empty()) std::memcpy(slot, piece.data(), piece.size());
    if (begin == 0) {
      this->begin(Kind::kBroadcast, bytes.size(), root, deadline);
    } else {
      meet(Kind::kBroadcast, deadline);
    }
    if (rank() != root && !piece.empty()) std::memcpy(piece.data(), slot, piece.size());
    ++turn_;
  }
  if (rank() == root) {
    count(bytes.size() * (size() - 1), 0);
  } else {
    count(0, bytes.size());
  }
}

}  // namespace cohort::collectives
