// A ring whose other end does what the bytes say: put, take, release, and lie about it. Payloads
// stay inside the ring and are what was put in, as long as nobody lied; a lie is at worst believed.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <vector>

#include "network/ring.h"

namespace cohort {
namespace {

constexpr std::size_t kSize = 4096;

class Bench {
 public:
  void put(std::size_t length, std::byte fill) {
    const std::vector<std::byte> payload(length, fill);
    const auto cut = length / 3;
    const auto result = writer_.put(std::span(payload).first(cut), std::span(payload).subspan(cut));
    if (result == network::RingWriter::Put::kBroken && !lied_) std::abort();
    if (result == network::RingWriter::Put::kDone) inside_.push_back(payload);
    if (result == network::RingWriter::Put::kFull && inside_.empty() && released_ && !lied_)
      std::abort();
  }
  void take(std::size_t length) {
    const bool known = !inside_.empty();
    const auto got = reader_.take(known ? inside_.front().size() : length);
    if (got.data() < memory_.data() || got.data() + got.size() > memory_.data() + kSize) {
      std::abort();
    }
    if (!known) lied_ = true;  // took what was never put in
    if (known && !lied_ && !std::equal(got.begin(), got.end(), inside_.front().begin())) {
      std::abort();
    }
    if (known) inside_.pop_front();
    released_ = false;
  }
  void release() {
    reader_.release();
    released_ = true;
  }
  void lie(std::uint64_t value) {
    control_.released = value;
    control_.waiting = static_cast<std::uint32_t>(value);
    lied_ = true;
  }

 private:
  network::RingControl control_{};
  std::vector<std::byte> memory_ = std::vector<std::byte>(kSize);
  network::RingWriter writer_{control_, memory_};
  network::RingReader reader_{control_, memory_};
  std::deque<std::vector<std::byte>> inside_;
  bool released_ = true;  // all that was taken
  bool lied_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bench bench;
  for (std::size_t i = 0; i + 3 <= size; i += 3) {
    const std::size_t length = (data[i + 1] | data[i + 2] << 8) % (kSize / 2 + 1);
    switch (data[i] % 8) {
      case 0:
      case 1:
      case 2:
        bench.put(length, static_cast<std::byte>(i));
        break;
      case 3:
      case 4:
        bench.take(length);
        break;
      case 5:
      case 6:
        bench.release();
        break;
      default:
        bench.lie(static_cast<std::uint64_t>(length) << (data[i] >> 3));
    }
  }
  return 0;
}

}  // namespace cohort
