#include "compressors/gap_code.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "compressors/wire.h"
#include "core/error.h"

namespace cohort::compressors::detail {
namespace {

// The best r for gaps that are geometrically distributed is the least with
// 2^r >= log(golden ratio) / p, p being the share of the indices (Kiely 2004).
unsigned rice_parameter(std::size_t count, std::size_t numel) {
  unsigned r = 0;
  while ((std::uint64_t{count} << r) * 1000 < std::uint64_t{numel} * 481) ++r;
  return r;
}

class BitWriter {
 public:
  explicit BitWriter(std::byte* out) : out_(out) {}

  void put(std::uint64_t bits, unsigned count) {  // count <= 32
    word_ |= bits << filled_;
    filled_ += count;
    if (filled_ >= 32) {
      store(out_, static_cast<std::uint32_t>(word_));
      out_ += sizeof(std::uint32_t);
      word_ >>= 32;
      filled_ -= 32;
    }
  }
  std::byte* finish() {
    for (; filled_ > 0; filled_ -= std::min(filled_, 8U), word_ >>= 8) {
      *out_++ = static_cast<std::byte>(word_);
    }
    return out_;
  }

 private:
  std::byte* out_;
  std::uint64_t word_ = 0;
  unsigned filled_ = 0;  // below 32 between calls
};

class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> wire) : wire_(wire) {}

  // The next bits, at least 57 of them; zeros after the end.
  std::uint64_t peek() const {
    const std::size_t byte = at_ / 8;
    if (byte + sizeof(std::uint64_t) <= wire_.size()) {
      return load<std::uint64_t>(wire_.data() + byte) >> at_ % 8;
    }
    std::uint64_t word = 0;
    if (byte < wire_.size()) std::memcpy(&word, wire_.data() + byte, wire_.size() - byte);
    return word >> at_ % 8;
  }
  void skip(std::size_t bits) { at_ += bits; }
  std::size_t at() const { return at_; }

 private:
  std::span<const std::byte> wire_;
  std::size_t at_ = 0;
};

constexpr unsigned kPeeked = 57;

// The zeros before the next one, which is passed, too; more than `most` means: too many.
std::uint64_t read_unary(BitReader& reader, std::uint64_t most) {
  std::uint64_t zeros = 0;
  while (true) {
    const auto run = static_cast<unsigned>(std::countr_zero(reader.peek()));
    if (run < kPeeked) {
      reader.skip(run + 1);
      return zeros + run;
    }
    zeros += kPeeked;
    reader.skip(kPeeked);
    if (zeros > most) return zeros;
  }
}

}  // namespace

std::size_t max_gap_bytes(std::size_t count, std::size_t numel) {
  if (count == 0) return 0;
  const unsigned r = rice_parameter(count, numel);
  return (count * (1 + r) + ((numel - count) >> r) + 7) / 8;
}

void encode_gaps(std::span<const std::uint32_t> indices, std::size_t numel, Bytes& wire) {
  if (indices.empty()) return;
  const unsigned r = rice_parameter(indices.size(), numel);
  const std::uint32_t low = (1U << r) - 1;
  // Whole words are written, so there must be room for one more.
  std::byte* begin = grow(wire, max_gap_bytes(indices.size(), numel) + sizeof(std::uint32_t));
  BitWriter writer(begin);
  std::uint32_t next = 0;
  for (const std::uint32_t index : indices) {
    const std::uint32_t gap = index - next;
    std::uint32_t zeros = gap >> r;
    for (; zeros >= 32; zeros -= 32) writer.put(0, 32);
    writer.put(std::uint64_t{1} << zeros, zeros + 1);
    writer.put(gap & low, r);
    next = index + 1;
  }
  wire.resize(wire.size() - static_cast<std::size_t>(wire.data() + wire.size() - writer.finish()));
}

std::size_t decode_gaps(std::string_view compressor, std::span<const std::byte> wire,
                        std::size_t numel, std::span<std::uint32_t> indices) {
  if (indices.empty()) return 0;
  const unsigned r = rice_parameter(indices.size(), numel);
  const std::uint64_t low = (std::uint64_t{1} << r) - 1;
  BitReader reader(wire);
  std::uint64_t next = 0;
  for (std::uint32_t& index : indices) {
    const std::uint64_t zeros = read_unary(reader, numel >> r);
    next += (zeros << r) + (reader.peek() & low);
    reader.skip(r);
    if (next >= numel) refuse(compressor, "an index beyond the end, or too few bytes");
    index = static_cast<std::uint32_t>(next++);
  }
  const std::size_t bytes = (reader.at() + 7) / 8;
  check_length(compressor, wire, bytes);
  const unsigned used = reader.at() % 8;
  if (used != 0 && std::to_integer<unsigned>(wire[bytes - 1]) >> used != 0) {
    refuse(compressor, "bits set after the last index");
  }
  return bytes;
}

}  // namespace cohort::compressors::detail
