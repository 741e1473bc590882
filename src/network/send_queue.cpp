#include "network/send_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "network/crc32c.h"
#include "network/overlap.h"

namespace cohort::network {
namespace {

constexpr std::size_t kSummedBeforeSending = 256 << 10;  // before they are sent
constexpr std::array<std::byte, kFrameHeaderBytes> kZeros = {};

}  // namespace

std::size_t SendQueue::push(const FrameHeader& header, std::span<const std::byte> first,
                            std::span<const std::byte> second) {
  Frame& frame = frames_.emplace_back();
  frame.meaning = header;
  frame.parts = {first, second};
  const std::size_t length = first.size() + second.size();
  frame.for_ring = ring_ != nullptr && fits_ring(length);
  if (!frame.for_ring) frame.padding = padding_after(length);
  bytes_ += frame.size();
  ++lent_frames_;
  return frame.size();
}

void SendQueue::push_first(const FrameHeader& header) {
  const bool begun = !frames_.empty() && frames_.front().sent > 0;
  Frame& frame = *frames_.emplace(frames_.begin() + (begun ? 1 : 0));
  frame.meaning = header;
  frame.lent = false;
  bytes_ += frame.size();
}

// Only when the frame's turn has come: the payload is then summed and sent in one go through the
// processor's cache.
void SendQueue::encode_header(Frame& frame) const {
  if (checksums_) {
    frame.meaning.checksum = crc32c_extend(crc32c_extend(0, frame.parts[0]), frame.parts[1]);
  }
  encode(frame.meaning, frame.header);
  frame.encoded = true;
}

// How many bytes it had to copy.
std::size_t SendQueue::take_copy(Frame& frame) {
  std::size_t past = frame.sent > frame.header.size() ? frame.sent - frame.header.size() : 0;
  for (auto& part : frame.parts) {  // what is sent is not needed any more
    const std::size_t dropped = std::min(past, part.size());
    part = part.subspan(dropped);
    past -= dropped;
  }
  frame.padding -= past;
  frame.sent = std::min(frame.sent, frame.header.size());
  const std::size_t left = frame.parts[0].size() + frame.parts[1].size();
  if (left > 0) {
    auto copy = std::make_unique_for_overwrite<std::byte[]>(left);
    std::byte* to = copy.get();
    for (const auto part : frame.parts) to = std::copy(part.begin(), part.end(), to);
    frame.copy = std::move(copy);
    frame.parts = {std::span<const std::byte>(frame.copy.get(), left), {}};
  }
  frame.lent = false;
  --lent_frames_;
  return left;
}

void SendQueue::drop_copy(Frame& frame) {
  copied_bytes_ -= std::exchange(frame.counted, 0);
  frame.copy.reset();
}

void SendQueue::keep(Kept kept) {
  if (kept == Kept::kLent || frames_.empty() || !frames_.back().lent) return;
  Frame& frame = frames_.back();
  frame.counted = take_copy(frame);
  copied_bytes_ += frame.counted;
}

void SendQueue::copy_lent() {
  for (Frame& frame : frames_) {
    if (frame.lent) take_copy(frame);
  }
}

void SendQueue::copy_lent(std::span<const std::byte> memory) {
  if (lent_frames_ == 0) return;
  for (Frame& frame : frames_) {
    const bool changes = overlap(frame.parts[0], memory) || overlap(frame.parts[1], memory);
    if (frame.lent && changes) take_copy(frame);
  }
}

bool SendQueue::put_into_ring(Frame& frame) {
  switch (ring_->put(frame.parts[0], frame.parts[1])) {
    case RingWriter::Put::kFull:
      ring_is_full_ = true;
      return false;
    case RingWriter::Put::kBroken:
      throw PeerError("it says of the shared memory what cannot be");
    case RingWriter::Put::kDone:
      break;
  }
  bytes_ -= frame.parts[0].size() + frame.parts[1].size();
  frame.parts = {};
  drop_copy(frame);
  frame.for_ring = false;
  return true;
}

std::span<const iovec> SendQueue::next(std::span<iovec> out) {
  ring_is_full_ = false;
  std::size_t used = 0;
  std::size_t summed = 0;
  for (Frame& frame : frames_) {
    if (used + 4 > out.size() || summed >= kSummedBeforeSending) break;
    if (!frame.encoded) encode_header(frame);
    if (checksums_) summed += frame.size() - frame.sent;
    if (frame.for_ring && !put_into_ring(frame)) break;
    std::size_t past = frame.sent;
    const std::span<const std::byte> pieces[] = {frame.header, frame.parts[0], frame.parts[1],
                                                 std::span(kZeros).first(frame.padding)};
    for (const auto piece : pieces) {
      const std::size_t skipped = std::min(past, piece.size());
      past -= skipped;
      const auto rest = piece.subspan(skipped);
      if (rest.empty()) continue;
      out[used++] = {const_cast<std::byte*>(rest.data()), rest.size()};
    }
  }
  return out.first(used);
}

void SendQueue::sent(std::size_t bytes) {
  bytes_ -= bytes;
  while (bytes > 0) {
    Frame& frame = frames_.front();
    const std::size_t now = std::min(bytes, frame.size() - frame.sent);
    frame.sent += now;
    bytes -= now;
    if (frame.sent < frame.size()) continue;
    drop_copy(frame);
    if (frame.lent) --lent_frames_;
    frames_.pop_front();
  }
}

void SendQueue::clear() {
  frames_.clear();
  bytes_ = copied_bytes_ = lent_frames_ = 0;
}

}  // namespace cohort::network
