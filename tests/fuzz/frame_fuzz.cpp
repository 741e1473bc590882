// Any bytes in place of a connection, cut anywhere: frames that are what their headers say, or a
// reason. The first byte chooses: whether checksums are mended on the way so that the fuzzer gets
// past them, whether payloads have a place, whether there is a ring; the second is the cut.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.h"
#include "network/frame_reader.h"
#include "network/link.h"
#include "network/little_endian.h"

namespace cohort {
namespace {

constexpr std::size_t kRing = 2 * network::kMaxPayload;

struct Sink : network::FrameSink {
  std::optional<std::span<std::byte>> place_for(const network::FrameHeader& header) override {
    if (header.length > network::kMaxPayload) std::abort();
    if (!places || header.length == 0) return std::nullopt;
    place.resize(header.length);
    return place;
  }
  bool frame_arrived(const network::FrameHeader& header,
                     std::span<const std::byte> payload) override {
    if (payload.size() != header.length || header.job != network::JobId{}) std::abort();
    for (const std::byte value : payload) sum += std::to_integer<unsigned>(value);
    return header.type != 0xffff;
  }
  void ring_has_room() override {}

  bool places = false;
  std::vector<std::byte> place;
  unsigned sum = 0;
};

// Gives every run of bytes that begins like a header a right checksum.
void mend(std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at + network::kFrameHeaderBytes <= bytes.size();) {
    std::byte* header = bytes.data() + at;
    network::put_number(header, network::kFrameMagic);
    network::put_number(header + 4, network::kProtocolVersion);
    std::fill(header + 16, header + 32, std::byte{0});
    const auto length = network::get_number<std::uint32_t>(header + 8);
    const std::size_t there =
        std::min<std::size_t>(length, bytes.size() - at - network::kFrameHeaderBytes);
    network::put_number(header + 56, network::crc32c({header + network::kFrameHeaderBytes, there}));
    network::put_number(header + 60, network::crc32c({header, 60}));
    at += network::kFrameHeaderBytes + there + network::padding_after(length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const unsigned choice = data[0];
  const std::size_t cut = 1 + data[1] * 7;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(begin + 2, begin + size);
  if ((choice & 1) != 0) mend(bytes);

  network::RingControl control{};
  static std::vector<std::byte> memory(kRing);
  network::RingReader ring(control, memory);
  network::FrameReader reader(network::JobId{}, (choice & 4) == 0,
                              (choice & 8) != 0 ? &ring : nullptr);
  Sink sink;
  sink.places = (choice & 2) != 0;
  std::span<const std::byte> rest = bytes;
  while (!rest.empty()) {
    std::size_t given = 0;
    for (const auto room : reader.room()) {
      const std::size_t now = std::min({room.size(), rest.size(), cut - std::min(cut, given)});
      if (now == 0) continue;
      std::memcpy(room.data(), rest.data(), now);
      rest = rest.subspan(now);
      given += now;
      if (now < room.size()) break;
    }
    if (given == 0) std::abort();
    if (reader.accept(given, sink)) break;
  }
  return 0;
}

}  // namespace cohort
