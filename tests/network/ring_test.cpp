#include "network/ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <deque>

#include "core/random.h"
#include "network/link_pair.h"
#include "network/shared_rings.h"

namespace cohort::network {
namespace {

using Put = RingWriter::Put;

TEST(Ring, GivesBackWhatWasPutInWithRoomForNoMore) {
  RingControl control{};
  Bytes memory(8192);
  RingWriter writer(control, memory);
  RingReader reader(control, memory);
  RandomStream random(1, "ring");
  std::deque<Bytes> inside;
  std::size_t put = 0;
  std::size_t full = 0;
  bool asked = false;
  for (int i = 0; i < 20000; ++i) {
    const Bytes payload =
        test::some_bytes(1 + random.below(4096), static_cast<unsigned>(random.below(1000)));
    const auto cut = random.below(payload.size() + 1);
    const auto first = std::span(payload).first(cut);
    const Put result = writer.put(first, std::span(payload).subspan(cut));
    ASSERT_NE(result, Put::kBroken);
    if (result == Put::kDone) {
      inside.push_back(payload);
      ++put;
    } else {
      asked = true;
      ++full;
      ASSERT_FALSE(inside.empty());
    }
    const auto takes = result == Put::kFull ? 1 : random.below(2);
    for (std::uint64_t take = 0; take < takes && !inside.empty(); ++take) {
      const auto got = reader.take(inside.front().size());
      ASSERT_TRUE(std::equal(got.begin(), got.end(), inside.front().begin(), inside.front().end()));
      ASSERT_EQ((got.data() - memory.data()) % kRingAlignment, 0);
      inside.pop_front();
      // Told when it had asked, and only then.
      ASSERT_EQ(reader.release(), asked);
      asked = false;
    }
  }
  EXPECT_GT(put, 5000);
  EXPECT_GT(full, 100);
}

TEST(Ring, BelievesNoReaderThatClaimsWhatCannotBe) {
  for (const std::uint64_t claim :
       {std::uint64_t{4097}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    RingControl control{};
    Bytes memory(8192);
    RingWriter writer(control, memory);
    const Bytes payload(4096);
    ASSERT_EQ(writer.put(payload, {}), Put::kDone);
    control.released = claim;
    ASSERT_EQ(writer.put(payload, {}), Put::kDone);  // there is room without a look
    EXPECT_EQ(writer.put(payload, {}), claim <= 8192 ? Put::kDone : Put::kBroken);
  }
  RingControl control{};
  Bytes memory(8192);
  RingWriter writer(control, memory);
  const Bytes payload(4096);
  ASSERT_EQ(writer.put(payload, {}), Put::kDone);
  ASSERT_EQ(writer.put(payload, {}), Put::kDone);
  control.released = 4096;
  ASSERT_EQ(writer.put(payload, {}), Put::kDone);
  control.released = 0;  // it takes back what it had released
  EXPECT_EQ(writer.put(payload, {}), Put::kBroken);
}

TEST(SharedRings, AreTheSameMemoryForBothEnds) {
  Descriptor descriptor;
  const auto here = SharedRings::create(descriptor);
  ASSERT_NE(here, nullptr);
  const auto there = SharedRings::attach(descriptor);
  ASSERT_NE(there, nullptr);
  const Bytes question = test::some_bytes(100000, 1);
  const Bytes answer = test::some_bytes(200000, 2);
  ASSERT_EQ(here->writer().put(question, {}), Put::kDone);
  ASSERT_EQ(there->writer().put(answer, {}), Put::kDone);
  const auto asked = there->reader().take(question.size());
  const auto answered = here->reader().take(answer.size());
  EXPECT_TRUE(std::equal(asked.begin(), asked.end(), question.begin(), question.end()));
  EXPECT_TRUE(std::equal(answered.begin(), answered.end(), answer.begin(), answer.end()));
}

TEST(SharedRings, CannotBeCutOffByThePeer) {
  Descriptor descriptor;
  const auto rings = SharedRings::create(descriptor);
  ASSERT_NE(rings, nullptr);
  EXPECT_NE(::ftruncate(descriptor.get(), 4096), 0);
  EXPECT_NE(::ftruncate(descriptor.get(), 1 << 30), 0);
}

TEST(SharedRings, RefuseMemoryThatCouldBeCutOff) {
  Descriptor good;
  const auto rings = SharedRings::create(good);
  const off_t size = ::lseek(good.get(), 0, SEEK_END);
  const Descriptor unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), size), 0);
  EXPECT_EQ(SharedRings::attach(unsealed), nullptr);
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_EQ(SharedRings::attach(unsealed), nullptr);

  const Descriptor small(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(small.get(), size - 4096), 0);
  ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL), 0);
  EXPECT_EQ(SharedRings::attach(small), nullptr);

  const Descriptor file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(SharedRings::attach(file), nullptr);
  EXPECT_EQ(SharedRings::attach(Descriptor()), nullptr);
}

}  // namespace
}  // namespace cohort::network
