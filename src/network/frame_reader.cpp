#include "network/frame_reader.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "network/crc32c.h"
#include "network/link.h"

namespace cohort::network {
namespace {

// Shorter payloads without a place are awaited in the buffer and shown there.
constexpr std::size_t kShownInBuffer = 8 << 10;
// Bytes are summed while they are still in the processor's cache.
constexpr std::size_t kSummedAfterReading = 256 << 10;

void check_place(const std::optional<std::span<std::byte>>& place, std::size_t length) {
  if (place && place->size() != length) {
    throw RunError("a place of " + std::to_string(place->size()) + " bytes for a payload of " +
                   std::to_string(length));
  }
}

}  // namespace

FrameReader::FrameReader(const JobId& job, bool checksums, RingReader* ring)
    : job_(job),
      checksums_(checksums),
      ring_(ring),
      buffer_(std::make_unique_for_overwrite<Buffer>()) {}

std::span<const std::byte> FrameReader::buffered() const {
  return {buffer_->bytes + begin_, end_ - begin_};
}

std::array<std::span<std::byte>, 2> FrameReader::room() {
  if (begin_ > 0) {
    std::memmove(buffer_->bytes, buffer_->bytes + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto rest = place_.subspan(placed_);
  if (checksums_ && rest.size() > kSummedAfterReading) return {rest.first(kSummedAfterReading), {}};
  // After a long payload comes a header, and after that probably another: which then goes straight
  // to its place.
  const std::size_t beyond =
      rest.size() > kReadBuffer ? padding_after(place_.size()) + kFrameHeaderBytes : kReadBuffer;
  return {rest, std::span(buffer_->bytes + end_, std::min(beyond, kReadBuffer - end_))};
}

void FrameReader::forget_place() {
  if (spare_.size() < place_.size()) spare_.resize(place_.size());
  place_ = std::span(spare_).first(place_.size());
}

std::optional<std::string> FrameReader::accept(std::size_t bytes, FrameSink& sink) {
  const std::size_t straight = std::min(bytes, place_.size() - placed_);
  if (straight > 0 && checksums_) {
    sum_ = crc32c_extend(sum_, place_.subspan(placed_, straight));
  }
  placed_ += straight;
  end_ += bytes - straight;
  if (!place_.empty()) {
    if (placed_ < place_.size()) return std::nullopt;
    const std::span<const std::byte> payload = place_;
    if (finish(payload, sink) != Next::kMore) return refusal_;
  }
  while (next_frame(sink) == Next::kMore) continue;
  return refusal_;
}

FrameReader::Next FrameReader::next_frame(FrameSink& sink) {
  if (!header_) {
    const std::size_t skipped = std::min(padding_, buffered().size());
    padding_ -= skipped;
    begin_ += skipped;
    if (buffered().size() < kFrameHeaderBytes) return Next::kWait;
    auto decoded = decode(buffered().first<kFrameHeaderBytes>());
    if (auto* refusal = std::get_if<FrameRefusal>(&decoded)) {
      refusal_ = refusal->reason;
      return Next::kEnough;
    }
    header_ = std::get<FrameHeader>(decoded);
    if (header_->job != job_) {
      refusal_ = "a frame of another job";
      return Next::kEnough;
    }
    begin_ += kFrameHeaderBytes;
    if (ring_ != nullptr && fits_ring(header_->length)) return take_from_ring(sink);
    return begin_payload(sink);
  }
  if (buffered().size() < header_->length) return Next::kWait;
  const auto payload = buffered().first(header_->length);
  begin_ += payload.size();
  if (checksums_) sum_ = crc32c_extend(0, payload);
  return finish(payload, sink);
}

FrameReader::Next FrameReader::begin_payload(FrameSink& sink) {
  const std::size_t length = header_->length;
  const auto place = sink.place_for(*header_);
  check_place(place, length);
  if (!place && length <= kShownInBuffer) return Next::kMore;
  if (!place && spare_.size() < length) spare_.resize(length);
  place_ = place ? *place : std::span(spare_).first(length);
  sum_ = 0;
  placed_ = std::min(buffered().size(), length);
  if (placed_ > 0) {
    std::memcpy(place_.data(), buffer_->bytes + begin_, placed_);
    if (checksums_) sum_ = crc32c_extend(0, place_.first(placed_));
  }
  begin_ += placed_;
  if (placed_ < length) return Next::kWait;
  const std::span<const std::byte> payload = place_;
  return finish(payload, sink);
}

FrameReader::Next FrameReader::take_from_ring(FrameSink& sink) {
  const auto payload = ring_->take(header_->length);
  const auto place = sink.place_for(*header_);
  check_place(place, payload.size());
  if (place) {
    std::memcpy(place->data(), payload.data(), payload.size());
    if (ring_->release()) sink.ring_has_room();
    return finish(*place, sink);
  }
  const Next next = finish(payload, sink);
  if (ring_->release()) sink.ring_has_room();
  return next;
}

FrameReader::Next FrameReader::finish(std::span<const std::byte> payload, FrameSink& sink) {
  const FrameHeader header = *header_;
  header_.reset();
  const bool by_ring = ring_ != nullptr && fits_ring(header.length);
  padding_ = by_ring ? 0 : padding_after(header.length);
  place_ = {};
  placed_ = 0;
  if (checksums_ && header.length > 0 && header.checksum != sum_) {
    refusal_ = "a payload with a wrong checksum";
    return Next::kEnough;
  }
  return sink.frame_arrived(header, payload) ? Next::kMore : Next::kEnough;
}

}  // namespace cohort::network
