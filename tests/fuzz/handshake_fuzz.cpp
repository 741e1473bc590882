// Any bytes in place of a greeting or of its answer: who they say they are, or a refusal with a
// kind; and only those who know the job are told why. Bits of the first byte choose whether
// checksums are mended, and whether the version is.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "network/handshake.h"
#include "network/little_endian.h"

namespace cohort {
namespace {

void mend(std::vector<std::byte>& bytes, bool version) {
  network::put_number(bytes.data(), network::kFrameMagic);
  if (version) network::put_number(bytes.data() + 4, network::kProtocolVersion);
  const auto length = network::get_number<std::uint32_t>(bytes.data() + 8);
  const std::size_t there =
      std::min<std::size_t>(length, bytes.size() - network::kFrameHeaderBytes);
  network::put_number(bytes.data() + 56,
                      network::crc32c({bytes.data() + network::kFrameHeaderBytes, there}));
  network::put_number(bytes.data() + 60, network::crc32c({bytes.data(), 60}));
}

void check_hello(std::span<const std::byte> bytes, const network::Identity& self) {
  const auto header = bytes.first<network::kFrameHeaderBytes>();
  const bool knows_job = std::memcmp(bytes.data() + 16, self.job.data(), self.job.size()) == 0;
  const auto length = network::judge_header(header, self.job);
  if (const auto* refusal = std::get_if<network::Refusal>(&length)) {
    if (refusal->kind.empty() || (refusal->tell && !knows_job)) std::abort();
    return;
  }
  const std::size_t size = std::get<std::size_t>(length);
  if (size > network::kGreetingBytes + network::kMaxNoteBytes) std::abort();
  if (bytes.size() < network::kFrameHeaderBytes + size) return;
  const auto payload = bytes.subspan(network::kFrameHeaderBytes, size);
  const auto verdict = network::judge_hello(header, payload, self, std::nullopt);
  if (const auto* greeting = std::get_if<network::Greeting>(&verdict)) {
    if (!self.is(greeting->peer) || greeting->self.rank < 0 || !knows_job) std::abort();
    // What was understood is what would have been said.
    const auto again = network::encode_greeting(network::kHello, *greeting);
    if (!std::equal(payload.begin(), payload.end(), again.begin() + network::kFrameHeaderBytes)) {
      std::abort();
    }
  }
}

void check_answer(std::span<const std::byte> bytes, const network::Identity& self) {
  const network::Greeting hello{.self = self,
                                .peer = {self.job, network::Role::kWorker, 0},
                                .shared_memory = false,
                                .silence = std::chrono::seconds(3)};
  const auto header = bytes.first<network::kFrameHeaderBytes>();
  const auto length = network::judge_answer_header(header, self.job);
  if (const auto* problem = std::get_if<std::string>(&length)) {
    if (problem->empty()) std::abort();
    return;
  }
  const std::size_t size = std::get<std::size_t>(length);
  if (size > network::kMaxRefusalBytes) std::abort();
  if (bytes.size() < network::kFrameHeaderBytes + size) return;
  const auto verdict = network::judge_answer(
      header, bytes.subspan(network::kFrameHeaderBytes, size), hello, std::nullopt);
  if (const auto* refused = std::get_if<network::Refused>(&verdict)) {
    for (const char letter : refused->reason) {
      if (letter < ' ' || letter > '~') std::abort();
    }
  }
  if (const auto* greeting = std::get_if<network::Greeting>(&verdict)) {
    if (greeting->self != hello.peer || greeting->shared_memory) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 + network::kFrameHeaderBytes) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(begin + 1, begin + size);
  if ((data[0] & 1) != 0) mend(bytes, (data[0] & 2) == 0);
  const network::Identity self{network::JobId{}, network::Role::kServer, 0};
  check_hello(bytes, self);
  check_answer(bytes, self);
  return 0;
}

}  // namespace cohort
