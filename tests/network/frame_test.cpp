#include "network/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "network/crc32c.h"
#include "network/link_pair.h"
#include "network/little_endian.h"

namespace cohort::network {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Bit by bit, as the definition has it.
std::uint32_t slow_crc32c(std::span<const std::byte> bytes) {
  std::uint32_t sum = ~0U;
  for (const std::byte value : bytes) {
    sum ^= std::to_integer<std::uint32_t>(value);
    for (int i = 0; i < 8; ++i) sum = sum >> 1 ^ (sum & 1 ? 0x82F63B78U : 0);
  }
  return ~sum;
}

TEST(Crc32c, IsThatOfTheStandard) {  // RFC 3720, B.4
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U);
  const Bytes zeros(32);
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAU);
  const Bytes ones(32, std::byte{0xff});
  EXPECT_EQ(crc32c(ones), 0x62A8AB43U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, IsTheSameByEveryWayAndAtEveryCut) {
  const Bytes data = test::some_bytes(3 * 3 * 2048 + 77);
  for (const std::size_t begin : {0, 1, 7}) {
    for (const std::size_t size : {0, 1, 8, 63, 767, 768, 769, 1536, 6145, 18000}) {
      const auto part = std::span(data).subspan(begin, size);
      const std::uint32_t expected = slow_crc32c(part);
      EXPECT_EQ(crc32c(part), expected) << begin << " " << size;
      EXPECT_EQ(crc32c_extend_by_table(0, part), expected) << begin << " " << size;
      const auto cut = size / 3;
      EXPECT_EQ(crc32c_extend(crc32c_extend(0, part.first(cut)), part.subspan(cut)), expected);
      EXPECT_EQ(crc32c_extend_by_table(crc32c(part.first(cut)), part.subspan(cut)), expected);
    }
  }
}

FrameHeader sample() {
  FrameHeader header{.type = 0x2122, .length = 0x00012324, .detail = 0x31323334};
  for (std::size_t i = 0; i < header.job.size(); ++i) header.job[i] = static_cast<std::byte>(i);
  header.incarnation = 0x4142434445464748;
  header.sequence = 0x5152535455565758;
  header.place = 0x6162636465666768;
  header.checksum = 0x71727374;
  return header;
}

std::array<std::byte, kFrameHeaderBytes> sealed(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  encode(header, bytes);
  return bytes;
}

TEST(FrameHeader, IsLaidOutAsTheProtocolSays) {
  const auto bytes = sealed(sample());
  const unsigned char expected[60] = {
      'C',  'H',  'R',  'T',  5,    0,    0x22, 0x21, 0x24, 0x23, 0x01, 0x00, 0x34, 0x33, 0x32,
      0x31, 0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,
      14,   15,   0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, 0x58, 0x57, 0x56, 0x55, 0x54,
      0x53, 0x52, 0x51, 0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61, 0x74, 0x73, 0x72, 0x71};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof expected), 0);
  EXPECT_EQ(get_number<std::uint32_t>(bytes.data() + 60), slow_crc32c(std::span(bytes).first(60)));
  const auto decoded = decode(bytes);
  ASSERT_TRUE(std::holds_alternative<FrameHeader>(decoded));
  EXPECT_EQ(std::get<FrameHeader>(decoded), sample());
}

TEST(FrameHeader, IsRefusedWithAnyBitChanged) {
  for (std::size_t bit = 0; bit < 8 * kFrameHeaderBytes; ++bit) {
    auto bytes = sealed(sample());
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_TRUE(std::holds_alternative<FrameRefusal>(decode(bytes))) << bit;
  }
}

std::string refusal_of_header(std::array<std::byte, kFrameHeaderBytes> bytes) {
  put_number(bytes.data() + 60, crc32c(std::span(bytes).first(60)));
  const auto decoded = decode(bytes);
  const auto* refusal = std::get_if<FrameRefusal>(&decoded);
  return refusal != nullptr ? refusal->reason : "";
}

TEST(FrameHeader, IsRefusedForWhatItSays) {
  auto bytes = sealed(sample());
  EXPECT_EQ(refusal_of_header(bytes), "");
  put_number(bytes.data() + 4, std::uint16_t{9});
  EXPECT_THAT(refusal_of_header(bytes), HasSubstr("version 9"));
  bytes = sealed(sample());
  put_number(bytes.data() + 8, kMaxPayload);
  EXPECT_EQ(refusal_of_header(bytes), "");
  for (const std::uint32_t length : {kMaxPayload + 1, 0x80000000U, 0xffffffffU}) {
    put_number(bytes.data() + 8, length);
    EXPECT_THAT(refusal_of_header(bytes), HasSubstr(std::to_string(length)));
  }
  bytes = sealed(sample());
  bytes[0] = std::byte{'X'};
  EXPECT_EQ(refusal_of_header(bytes), "not a cohort frame");
}

}  // namespace
}  // namespace cohort::network
