#include "collectives/process_shared.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "collectives/chunks.h"
#include "collectives/farewell.h"
#include "collectives/meeting.h"
#include "collectives/process_board.h"
#include "collectives/shared_mapping.h"
#include "collectives/sum.h"
#include "core/error.h"

namespace cohort {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kChunkBytes = std::size_t{512} * 1024;
constexpr std::size_t kSmallBytes = std::size_t{16} * 1024;
constexpr std::int64_t kChunkFloats = kChunkBytes / sizeof(float);
constexpr std::size_t kMostGathered = std::size_t{1} << 32;  // a longer length is damage

enum class Kind : std::uint32_t { kAllReduce, kAllGather, kBroadcast, kBarrier };

const char* kind_name(std::uint32_t kind) {
  constexpr std::array kNames{"all_reduce", "all_gather", "broadcast", "barrier"};
  return kind < kNames.size() ? kNames[kind] : "something unknown";
}

// What a member brings to an operation.
struct Arrival {
  std::atomic<std::uint32_t> kind;
  std::atomic<Rank> root;
  std::atomic<std::uint64_t> bytes;
};

struct alignas(kCacheLine) Seat {
  Arrival arrivals[2];                 // of operations by turns
  std::atomic<std::uint32_t> awaited;  // one more than the last meeting it came to
};

// The head of a channel in the shared memory; zeros are a new one. Seats and buffers follow.
struct alignas(kCacheLine) ChannelHead {
  alignas(kCacheLine) Meeting meeting;
  alignas(kCacheLine) FailureNote note;
};

// Finds the parts of the shared memory: the board, then channel after channel.
class Layout {
 public:
  Layout(const ProcessBoard::Ranks& ranks, int channels)
      : size_(ranks.size()), channels_(channels), board_(aligned(ProcessBoard::bytes(ranks))) {}

  std::size_t bytes() const { return board_ + channels_ * channel_bytes(); }
  std::size_t channel(int index) const { return board_ + index * channel_bytes(); }
  std::size_t seat(int member) const { return sizeof(ChannelHead) + member * sizeof(Seat); }
  std::size_t small(int member, std::uint64_t turn) const {
    return seat(size()) + (turn % 2 * size_ + member) * kSmallBytes;
  }
  std::size_t slot(int member, std::uint64_t turn) const {
    return small(0, 0) + 2 * size_ * kSmallBytes + (turn % 2 * size_ + member) * kChunkBytes;
  }
  std::size_t result(std::uint64_t turn) const {
    return slot(0, 0) + (2 * size_ + turn % 2) * kChunkBytes;
  }
  int size() const { return static_cast<int>(size_); }

 private:
  static std::size_t aligned(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
  std::size_t channel_bytes() const { return aligned(result(1) + kChunkBytes); }

  std::size_t size_;
  std::size_t channels_;
  std::size_t board_;
};

// Part `part` of a chunk; all but the last begin at a cache line.
Range part_of(std::int64_t numel, int parts, int part) {
  constexpr std::int64_t kLine = kCacheLine / sizeof(float);
  const Range lines = chunk_of((numel + kLine - 1) / kLine, parts, part);
  const std::int64_t begin = std::min(numel, lines.begin * kLine);
  return {begin, std::min(numel, lines.end() * kLine) - begin};
}

class Shared;

class ProcessChannel final : public Collectives {
 public:
  ProcessChannel(std::shared_ptr<Shared> shared, int channel);
  ProcessChannel(const ProcessChannel&) = delete;
  ProcessChannel& operator=(const ProcessChannel&) = delete;
  ~ProcessChannel() override;

  Rank rank() const override { return own_; }
  int size() const override { return layout_.size(); }
  void all_reduce(std::span<float> values, Deadline deadline) override;
  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override;
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override;
  void barrier(Deadline deadline) override { begin(Kind::kBarrier, 0, 0, deadline); }
  void leave(const std::string& reason) override;
  Traffic traffic() const override { return {sent_.load(), received_.load()}; }

 private:
  void begin(Kind kind, std::size_t bytes, Rank root, Deadline deadline);
  void meet(Kind kind, Deadline deadline, bool check);
  void small_all_reduce(std::span<float> values, Deadline deadline);
  void large_all_reduce(std::span<float> values, Deadline deadline);
  void copy_in(std::span<float> chunk, std::uint64_t turn);
  void sum(std::span<float> chunk, std::uint64_t turn);
  void copy_out(std::span<float> chunk, std::uint64_t turn);
  std::string find_mismatch() const;
  std::string missing(Kind kind, std::uint32_t number, double waited) const;
  void count(std::uint64_t sent, std::uint64_t received) {
    sent_.fetch_add(sent, std::memory_order_relaxed);
    received_.fetch_add(received, std::memory_order_relaxed);
  }

  ChannelHead& head() const { return *std::launder(reinterpret_cast<ChannelHead*>(memory_)); }
  Seat& seat(int member) const {
    return *std::launder(reinterpret_cast<Seat*>(memory_ + layout_.seat(member)));
  }
  Arrival& arrival(int member) const { return seat(member).arrivals[operation_ % 2]; }
  float* floats(std::size_t place) const { return reinterpret_cast<float*>(memory_ + place); }

  std::shared_ptr<Shared> shared_;
  const Layout layout_;
  const int channel_;
  const int own_;
  std::byte* const memory_;
  std::vector<const float*> inputs_;  // by member; kept to save the allocation
  std::uint64_t operation_ = 0;       // how many were begun; all members count alike
  std::uint64_t turn_ = 0;            // how many chunks passed; all members count alike
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
};

class Shared final : public ProcessShared, public std::enable_shared_from_this<Shared> {
 public:
  Shared(SharedMapping mapping, const ProcessGroup& group, int own)
      : mapping_(std::move(mapping)),
        layout_(group.ranks, group.channels),
        channels_(group.channels),
        own_(own),
        patience_(Patience::for_group(layout_.size(), true)),
        board_(mapping_.data(), group.ranks, own, group.silence, [this](const std::string& text) {
          for (int channel = 0; channel < channels_; ++channel) fail(channel, text);
        }) {}

  const std::string& name() const override { return mapping_.name(); }

  void wait_for_all(Deadline deadline) override {
    board_.wait_for_all(deadline);
    mapping_.remove_name();
    patience_ = Patience::for_group(layout_.size(), true, board_.cores());
  }

  std::unique_ptr<Collectives> channel(int index) override {
    COHORT_CHECK(index >= 0 && index < channels_, "no channel " + std::to_string(index));
    return std::make_unique<ProcessChannel>(shared_from_this(), index);
  }

  std::shared_ptr<Activity> activity(int process, int index) override {
    return {shared_from_this(), &board_.activity(process, index)};
  }

  std::string failure(int channel) const override {
    if (!head(channel).meeting.broken()) return "";
    std::string text = head(channel).note.read();
    return head(channel).note.orderly() ? "" : text;
  }

  // The first reason counts.
  void fail(int channel, const std::string& reason, bool orderly = false) {
    head(channel).note.write(reason, orderly);
    head(channel).meeting.break_up(true);
  }

  std::byte* memory(int channel) const { return mapping_.data() + layout_.channel(channel); }
  const ProcessBoard& board() const { return board_; }
  const Layout& layout() const { return layout_; }
  const Patience& patience() const { return patience_; }
  int own() const { return own_; }

 private:
  ChannelHead& head(int channel) const {
    return *std::launder(reinterpret_cast<ChannelHead*>(memory(channel)));
  }

  SharedMapping mapping_;
  const Layout layout_;
  const int channels_;
  const int own_;
  Patience patience_;
  ProcessBoard board_;  // last: its thread uses the others
};

ProcessChannel::ProcessChannel(std::shared_ptr<Shared> shared, int channel)
    : shared_(std::move(shared)),
      layout_(shared_->layout()),
      channel_(channel),
      own_(shared_->own()),
      memory_(shared_->memory(channel)),
      inputs_(layout_.size()) {}

ProcessChannel::~ProcessChannel() {
  shared_->fail(channel_, shared_->board().ranks(own_) + " has left the group", true);
}

void ProcessChannel::leave(const std::string& reason) {
  shared_->fail(channel_, farewell(shared_->board().ranks(own_), reason));
}

void ProcessChannel::begin(Kind kind, std::size_t bytes, Rank root, Deadline deadline) {
  ++operation_;
  Arrival& own = arrival(own_);
  own.kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
  own.bytes.store(bytes, std::memory_order_relaxed);
  own.root.store(root, std::memory_order_relaxed);
  meet(kind, deadline, true);
}

void ProcessChannel::meet(Kind kind, Deadline deadline, bool check) {
  Meeting& meeting = head().meeting;
  const std::uint32_t number = meeting.held();
  seat(own_).awaited.store(number + 1, std::memory_order_release);
  std::string mismatch;
  const auto start = Clock::now();
  const auto outcome = meeting.meet(size(), shared_->patience(), deadline, [&] {
    if (check) mismatch = find_mismatch();
    return mismatch.empty();
  });
  if (outcome == Meeting::Outcome::kMet) return;
  if (outcome == Meeting::Outcome::kRefused) {
    shared_->fail(channel_, mismatch);
  } else if (outcome == Meeting::Outcome::kLate) {
    shared_->fail(channel_, missing(kind, number, seconds_between(start, Clock::now())));
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

std::string ProcessChannel::missing(Kind kind, std::uint32_t number, double waited) const {
  char duration[32];
  std::snprintf(duration, sizeof duration, "%.1f s", waited);
  std::string text;
  for (int member = 0; member < size(); ++member) {
    if (seat(member).awaited.load(std::memory_order_acquire) == number + 1) continue;
    text += (text.empty() ? "" : "; ") + shared_->board().name(member) + " has not come to " +
            kind_name(static_cast<std::uint32_t>(kind)) + " in " + duration + "; it was " +
            shared_->board().activities(member);
  }
  return text.empty() ? "an operation took longer than " + std::string(duration) : text;
}

void ProcessChannel::all_reduce(std::span<float> values, Deadline deadline) {
  if (values.size_bytes() <= kSmallBytes || size() == 1) {
    small_all_reduce(values, deadline);
  } else {
    large_all_reduce(values, deadline);
  }
}

void ProcessChannel::small_all_reduce(std::span<float> values, Deadline deadline) {
  if (size() > 1 && !values.empty()) {
    std::memcpy(floats(layout_.small(own_, operation_ + 1)), values.data(), values.size_bytes());
  }
  begin(Kind::kAllReduce, values.size_bytes(), 0, deadline);
  if (size() == 1) return;
  for (int from = 0; from < size(); ++from) {
    inputs_[from] = floats(layout_.small(from, operation_));
  }
  sum_in_order(inputs_, values.data(), static_cast<std::int64_t>(values.size()));
  count(values.size_bytes() * (size() - 1), values.size_bytes() * (size() - 1));
}

void ProcessChannel::large_all_reduce(std::span<float> values, Deadline deadline) {
  const auto numel = static_cast<std::int64_t>(values.size());
  const auto chunks = static_cast<int>((numel + kChunkFloats - 1) / kChunkFloats);
  const auto chunk = [&](int index) {
    const Range range = chunk_of(numel, chunks, index);
    return values.subspan(range.begin, range.size);
  };
  copy_in(chunk(0), turn_);
  begin(Kind::kAllReduce, values.size_bytes(), 0, deadline);
  // Between two meetings: what the others copied in before the first can be summed, what they
  // summed before it can be copied out, and what nobody has read since may be written.
  for (int i = 0; i < chunks; ++i) {
    sum(chunk(i), turn_ + i);
    if (i + 1 < chunks) copy_in(chunk(i + 1), turn_ + i + 1);
    if (i > 0) copy_out(chunk(i - 1), turn_ + i - 1);
    meet(Kind::kAllReduce, deadline, false);
  }
  copy_out(chunk(chunks - 1), turn_ + chunks - 1);
  turn_ += chunks;
}

void ProcessChannel::copy_in(std::span<float> chunk, std::uint64_t turn) {
  const Range own = part_of(static_cast<std::int64_t>(chunk.size()), size(), own_);
  float* slot = floats(layout_.slot(own_, turn));
  const auto end = static_cast<std::size_t>(own.end());
  std::memcpy(slot, chunk.data(), own.begin * sizeof(float));
  std::memcpy(slot + end, chunk.data() + end, (chunk.size() - end) * sizeof(float));
  count((chunk.size() - own.size) * sizeof(float), 0);
}

void ProcessChannel::sum(std::span<float> chunk, std::uint64_t turn) {
  const Range own = part_of(static_cast<std::int64_t>(chunk.size()), size(), own_);
  for (int from = 0; from < size(); ++from) {
    inputs_[from] = from == own_ ? chunk.data() + own.begin
                                 : floats(layout_.slot(from, turn)) + own.begin;
  }
  sum_in_order(inputs_, chunk.data() + own.begin, floats(layout_.result(turn)) + own.begin,
               own.size);
  const std::uint64_t moved = own.size * (size() - 1) * sizeof(float);
  count(moved, moved);
}

void ProcessChannel::copy_out(std::span<float> chunk, std::uint64_t turn) {
  const Range own = part_of(static_cast<std::int64_t>(chunk.size()), size(), own_);
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
    if (piece > 0) std::memcpy(memory_ + layout_.slot(own_, turn_), own.data() + begin, piece);
  };
  put(0);
  begin(Kind::kAllGather, own.size(), 0, deadline);
  std::vector<Bytes> all(size());
  std::size_t longest = 0;
  std::uint64_t total = 0;
  for (int from = 0; from < size(); ++from) {
    const std::size_t bytes = arrival(from).bytes.load(std::memory_order_relaxed);
    if (bytes > kMostGathered) {
      shared_->fail(channel_, shared_->board().name(from) + " announced a length that cannot be");
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
    meet(Kind::kAllGather, deadline, false);
  }
  count(own.size() * (size() - 1), total - own.size());
  return all;
}

void ProcessChannel::broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) {
  COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
  for (std::size_t begin = 0; begin == 0 || begin < bytes.size(); begin += kChunkBytes) {
    const auto piece = bytes.subspan(begin, std::min(kChunkBytes, bytes.size() - begin));
    std::byte* slot = memory_ + layout_.slot(root, turn_);
    if (own_ == root && !piece.empty()) std::memcpy(slot, piece.data(), piece.size());
    if (begin == 0) {
      this->begin(Kind::kBroadcast, bytes.size(), root, deadline);
    } else {
      meet(Kind::kBroadcast, deadline, false);
    }
    if (own_ != root && !piece.empty()) std::memcpy(piece.data(), slot, piece.size());
    ++turn_;
  }
  if (own_ == root) {
    count(bytes.size() * (size() - 1), 0);
  } else {
    count(0, bytes.size());
  }
}

void check_group(const ProcessGroup& group, int own) {
  const int size = static_cast<int>(group.ranks.size());
  if (size < 1 || size > Meeting::kMaxSize) {
    throw ConfigError("a group of processes on one host has 1 to " +
                      std::to_string(Meeting::kMaxSize) + ", not " + std::to_string(size));
  }
  COHORT_CHECK(own >= 0 && own < size && group.channels > 0, "no such member or channel");
}

}  // namespace

std::shared_ptr<ProcessShared> ProcessShared::create(const ProcessGroup& group, int own) {
  check_group(group, own);
  const std::size_t bytes = Layout(group.ranks, group.channels).bytes();
  return std::make_shared<Shared>(SharedMapping::create(bytes), group, own);
}

std::shared_ptr<ProcessShared> ProcessShared::open(const std::string& name,
                                                   const ProcessGroup& group, int own) {
  check_group(group, own);
  const std::size_t bytes = Layout(group.ranks, group.channels).bytes();
  return std::make_shared<Shared>(SharedMapping::open(name, bytes), group, own);
}

}  // namespace cohort
