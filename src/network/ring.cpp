#include "network/ring.h"

#include <cstring>

#include "core/error.h"

namespace cohort::network {
namespace {

struct Stretch {
  std::uint64_t offset = 0;  // where the payload begins
  std::uint64_t end = 0;     // the count after it
};

// Payloads are in one piece: one that does not fit before the end of the ring begins at its start.
Stretch next_stretch(std::uint64_t count, std::uint64_t length, std::uint64_t size) {
  const std::uint64_t rounded = (length + kRingAlignment - 1) / kRingAlignment * kRingAlignment;
  std::uint64_t offset = count % size;
  if (rounded > size - offset) {
    count += size - offset;
    offset = 0;
  }
  return {offset, count + rounded};
}

}  // namespace

RingWriter::Put RingWriter::put(std::span<const std::byte> first,
                                std::span<const std::byte> second) {
  const std::size_t length = first.size() + second.size();
  COHORT_CHECK(2 * length <= data_.size(), "a payload too long for the ring");
  const Stretch stretch = next_stretch(written_, length, data_.size());
  for (bool announced = false; stretch.end - released_ > data_.size(); announced = true) {
    const std::uint64_t released = control_->released.load(std::memory_order_seq_cst);
    if (released < released_ || released > written_) return Put::kBroken;
    released_ = released;
    if (stretch.end - released_ <= data_.size()) break;
    if (announced) return Put::kFull;
    // Looked at once more after this: the reader may have released before it could see the wish.
    control_->waiting.store(1, std::memory_order_seq_cst);
  }
  std::byte* to = data_.data() + stretch.offset;
  if (!first.empty()) std::memcpy(to, first.data(), first.size());
  if (!second.empty()) std::memcpy(to + first.size(), second.data(), second.size());
  written_ = stretch.end;
  std::atomic_thread_fence(std::memory_order_release);
  return Put::kDone;
}

std::span<const std::byte> RingReader::take(std::size_t length) {
  COHORT_CHECK(2 * length <= data_.size(), "a payload too long for the ring");
  std::atomic_thread_fence(std::memory_order_acquire);
  const Stretch stretch = next_stretch(taken_, length, data_.size());
  taken_ = stretch.end;
  return data_.subspan(stretch.offset, length);
}

bool RingReader::release() {
  control_->released.store(taken_, std::memory_order_seq_cst);
  if (control_->waiting.load(std::memory_order_seq_cst) == 0) return false;
  control_->waiting.store(0, std::memory_order_seq_cst);
  return true;
}

}  // namespace cohort::network
