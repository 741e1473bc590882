#include "network/crc32c.h"

#include <array>
#include <cstring>

#include "network/frame.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cohort::network {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // Castagnoli's, reflected

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Table make_table() {
  Table table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
    table[0][i] = value;
  }
  for (std::size_t slice = 1; slice < 8; ++slice) {
    for (std::size_t i = 0; i < 256; ++i) {
      table[slice][i] = table[slice - 1][i] >> 8 ^ table[0][table[slice - 1][i] & 255];
    }
  }
  return table;
}

constexpr Table kTable = make_table();

std::uint64_t word_at(const std::byte* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

#if defined(__x86_64__)

// The instruction has a latency of three cycles and a throughput of one: three stretches are summed
// side by side, and joined by shifting the sums over the zeros that follow them. They are short:
// the processor fetches ahead along one stream, not three (8 GB/s from memory with 2,048 bytes
// each, 19 with 256).
constexpr std::size_t kStretch = 256;

using Shift = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr std::uint32_t shift_one(std::uint32_t value, std::size_t zeros) {
  for (std::size_t i = 0; i < zeros; ++i) value = value >> 8 ^ kTable[0][value & 255];
  return value;
}

Shift make_shift(std::size_t zeros) {
  Shift shift{};
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::uint32_t i = 0; i < 256; ++i) shift[byte][i] = shift_one(i << (8 * byte), zeros);
  }
  return shift;
}

std::uint32_t shifted(const Shift& shift, std::uint32_t value) {
  return shift[0][value & 255] ^ shift[1][value >> 8 & 255] ^ shift[2][value >> 16 & 255] ^
         shift[3][value >> 24];
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t before,
                                                               std::span<const std::byte> bytes) {
  static const Shift kOver = make_shift(kStretch);
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t sum = ~before;
  while (left >= 3 * kStretch) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kStretch; i += 8) {
      sum = _mm_crc32_u64(sum, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + kStretch + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * kStretch + i));
    }
    sum = shifted(kOver, static_cast<std::uint32_t>(sum)) ^ second;
    sum = shifted(kOver, static_cast<std::uint32_t>(sum)) ^ third;
    at += 3 * kStretch;
    left -= 3 * kStretch;
  }
  for (; left >= 8; at += 8, left -= 8) sum = _mm_crc32_u64(sum, word_at(at));
  auto tail = static_cast<std::uint32_t>(sum);
  for (; left > 0; ++at, --left) tail = _mm_crc32_u8(tail, std::to_integer<std::uint8_t>(*at));
  return ~tail;
}

// Sixteen stretches of 16 bytes side by side, each carried over the 256 bytes to its next one by
// two products without carries: what a stretch contributes is the remainder of its polynomial times
// x^2048. All that was read ends up in 256 bytes of the same remainder, which the instruction above
// sums. (Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ, 2009.)
constexpr std::size_t kFold = 256;

// x^power modulo the polynomial, reflected, as the products take it.
constexpr std::uint64_t power_of_x(int power) {
  std::uint32_t value = 0x80000000;
  for (int i = 0; i < power; ++i) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
  return std::uint64_t{value} << 1;
}

__attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq,sse4.2"))) std::uint32_t by_products(
    std::uint32_t before, std::span<const std::byte> bytes) {
  constexpr std::uint64_t kLow = power_of_x(8 * kFold + 32);
  constexpr std::uint64_t kHigh = power_of_x(8 * kFold - 32);
  const __m512i factors = _mm512_set_epi64(kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow);
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size() / kFold * kFold;
  __m512i sums[4];
  for (std::size_t i = 0; i < 4; ++i) sums[i] = _mm512_loadu_si512(at + 64 * i);
  sums[0] = _mm512_xor_si512(sums[0],
                             _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~before))));
  for (at += kFold; at < end; at += kFold) {
    for (std::size_t i = 0; i < 4; ++i) {
      const __m512i low = _mm512_clmulepi64_epi128(sums[i], factors, 0x00);
      const __m512i high = _mm512_clmulepi64_epi128(sums[i], factors, 0x11);
      // The three of them, exclusive or.
      sums[i] = _mm512_ternarylogic_epi64(low, high, _mm512_loadu_si512(at + 64 * i), 0x96);
    }
  }
  std::array<std::byte, kFold> folded;
  std::memcpy(folded.data(), sums, kFold);
  // Its start and end are without the inversions that belong to the whole.
  const std::uint32_t sum = by_instruction(~std::uint32_t{0}, folded);
  return by_instruction(sum, bytes.subspan(static_cast<std::size_t>(end - bytes.data())));
}

bool has_products() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
}

#endif

}  // namespace

std::uint32_t crc32c_extend_by_table(std::uint32_t before, std::span<const std::byte> bytes) {
  std::uint32_t sum = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      next ^= kTable[7 - i][(sum >> (8 * i) & 255) ^ std::to_integer<std::uint32_t>(at[i])];
      next ^= kTable[3 - i][std::to_integer<std::uint32_t>(at[4 + i])];
    }
    sum = next;
  }
  for (; left > 0; ++at, --left) {
    sum = sum >> 8 ^ kTable[0][(sum ^ std::to_integer<std::uint32_t>(*at)) & 255];
  }
  return ~sum;
}

std::uint32_t crc32c_extend(std::uint32_t before, std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  static const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
  static const bool kHasProducts = kHasInstruction && has_products();
  if (kHasProducts && bytes.size() >= 4 * kFold) return by_products(before, bytes);
  if (kHasInstruction) return by_instruction(before, bytes);
#endif
  return crc32c_extend_by_table(before, bytes);
}

std::uint32_t crc32c(std::span<const std::byte> bytes) { return crc32c_extend(0, bytes); }

}  // namespace cohort::network
