#include "network/frame_reader.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/random.h"
#include "network/link_pair.h"
#include "network/raw_peer.h"

namespace cohort::network {
namespace {

struct Keeper : FrameSink {
  std::optional<std::span<std::byte>> place_for(const FrameHeader& header) override {
    if (header.detail == 0) return std::nullopt;
    place.resize(header.length);
    return place;
  }
  bool frame_arrived(const FrameHeader& header, std::span<const std::byte> payload) override {
    if (header.detail != 0 && payload.data() != place.data()) ADD_FAILURE() << "elsewhere";
    frames.push_back({header, {payload.begin(), payload.end()}});
    return frames.size() < wanted;
  }
  void ring_has_room() override {}

  Bytes place;
  std::vector<test::Frame> frames;
  std::size_t wanted = 1000000;
};

// Gives the reader `bytes` in pieces as long as `piece` says.
std::optional<std::string> feed(FrameReader& reader, std::span<const std::byte> bytes, Keeper& sink,
                                const std::function<std::size_t()>& piece) {
  while (!bytes.empty()) {
    std::size_t given = 0;
    for (const auto room : reader.room()) {
      const std::size_t now = std::min({room.size(), bytes.size(), piece()});
      if (now == 0) continue;  // an empty span has no address to copy to
      std::memcpy(room.data(), bytes.data(), now);
      bytes = bytes.subspan(now);
      given += now;
      if (now < room.size()) break;
    }
    if (auto refusal = reader.accept(given, sink)) return refusal;
    if (sink.frames.size() >= sink.wanted) return std::nullopt;
  }
  return std::nullopt;
}

TEST(FrameReader, GivesTheSameFramesHoweverTheBytesCome) {
  const JobId job = job_id_of("test");
  RandomStream random(1, "frames");
  Bytes stream;
  std::vector<test::Frame> expected;
  for (unsigned i = 0; i < 60; ++i) {
    const std::size_t sizes[] = {0, 1 + random.below(200), random.below(9000),
                                 random.below(100000)};
    test::Frame frame{{.type = test::kData, .detail = i % 2, .job = job, .sequence = i},
                      test::some_bytes(sizes[random.below(4)], i)};
    const Bytes bytes = test::frame_bytes(frame.header, frame.payload);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    expected.push_back(frame);
  }
  const std::vector<std::function<std::size_t()>> ways = {
      [] { return std::size_t{1}; }, [] { return std::size_t{64}; },
      [] { return std::size_t{1} << 30; }, [&] { return 1 + random.below(5000); }};
  for (const auto& way : ways) {
    FrameReader reader(job, true, nullptr);
    Keeper keeper;
    ASSERT_EQ(feed(reader, stream, keeper, way), std::nullopt);
    ASSERT_EQ(keeper.frames.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(keeper.frames[i].header.sequence, i);
      EXPECT_TRUE(keeper.frames[i].payload == expected[i].payload) << i;
    }
  }
}

std::optional<std::string> refusal_of_stream(const Bytes& bytes) {
  FrameReader reader(job_id_of("test"), true, nullptr);
  Keeper keeper;
  return feed(reader, bytes, keeper, [] { return std::size_t{1000}; });
}

TEST(FrameReader, RefusesDamagedPayloadsForeignJobsAndNonsense) {
  FrameHeader header{.type = test::kData, .job = job_id_of("test")};
  for (const std::size_t size : {10, 9000, 100000}) {
    for (const std::uint32_t placed : {0, 1}) {
      header.detail = placed;
      Bytes bytes = test::frame_bytes(header, test::some_bytes(size));
      EXPECT_EQ(refusal_of_stream(bytes), std::nullopt);
      bytes[kFrameHeaderBytes + size / 2] ^= std::byte{4};
      EXPECT_EQ(refusal_of_stream(bytes), "a payload with a wrong checksum");
    }
  }
  header.job = job_id_of("other");
  EXPECT_EQ(refusal_of_stream(test::frame_bytes(header)), "a frame of another job");
  EXPECT_EQ(refusal_of_stream(Bytes(64)), "not a cohort frame");
}

TEST(FrameReader, StopsWhenNoMoreIsWanted) {
  const FrameHeader header{.type = test::kData, .job = job_id_of("test")};
  Bytes stream;
  for (int i = 0; i < 5; ++i) {
    const Bytes bytes = test::frame_bytes(header, test::some_bytes(100));
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  FrameReader reader(job_id_of("test"), true, nullptr);
  Keeper keeper;
  keeper.wanted = 2;
  EXPECT_EQ(feed(reader, stream, keeper, [] { return std::size_t{100000}; }), std::nullopt);
  EXPECT_EQ(keeper.frames.size(), 2);
}

}  // namespace
}  // namespace cohort::network
