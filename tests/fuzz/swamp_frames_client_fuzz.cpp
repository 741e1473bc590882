// A worker's side of the conversation with a best-model server that says anything: the bytes are
// frames, lost connections, and what the owner asks for in between. The client throws nothing but
// PeerError, writes nowhere but to its own memory, and keeps no more offers than were made.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/error.h"
#include "input.h"
#include "swamp/best_model_client.h"

namespace cohort {
namespace {

constexpr std::int64_t kSize = 12;

swamp::SwampSpec make_spec() {
  swamp::SwampSpec spec;
  spec.workers = 3;
  spec.values = kSize;
  return spec;
}

class Harness final : public swamp::SwampClientPorts {
 public:
  explicit Harness(std::uint8_t choice)
      : model_(std::make_shared<const std::vector<float>>(kSize, 0.5F)),
        client_((choice & 1) != 0 ? 1 : 0, make_spec(), *this) {
    if ((choice & 1) == 0) client_.initialize(model_);
    client_.pull(swamp::PullKind::kStart, 0);
  }

  void step(Input& input) {
    switch (input.byte() % 8) {
      case 0:
        if (connected_) return;
        connected_ = true;
        return client_.on_connected(now());
      case 1:
        connected_ = false;
        return client_.on_lost(now());
      case 2:
        if (!leaving_ && offers_ < 64)
          COHORT_CHECK(client_.offer(model_, 1) == ++offers_, "counts");
        return;
      case 3:
        return client_.pull(static_cast<swamp::PullKind>(input.byte() % 3), input.byte());
      case 4:
        if (input.byte() % 8 == 0) client_.leave(), leaving_ = true;
        if (input.byte() % 8 == 1) client_.cancel_pull();
        return;
      default:
        return frame(input);
    }
  }

  void send(const network::FrameHeader& header, std::span<const std::byte> payload,
            const swamp::ModelValues&) override {
    COHORT_CHECK(connected_, "a frame without a connection");
    COHORT_CHECK(payload.size() <= network::kMaxPayload, "a payload over the bound");
    incarnation_ = header.incarnation;
  }

 private:
  static Deadline now() { return Deadline{} + std::chrono::hours(1); }

  void frame(Input& input) {
    network::FrameHeader header;
    const std::uint8_t type = input.byte();
    constexpr auto kJoined = static_cast<network::FrameType>(membership::MemberFrame::kJoined);
    constexpr network::FrameType kTypes[] = {
        kJoined,
        static_cast<network::FrameType>(membership::MemberFrame::kRefused),
        static_cast<network::FrameType>(membership::MemberFrame::kFenced),
        static_cast<network::FrameType>(swamp::SwampFrame::kVerdict),
        static_cast<network::FrameType>(swamp::SwampFrame::kNothing),
        static_cast<network::FrameType>(swamp::SwampFrame::kModel),
        static_cast<network::FrameType>(swamp::SwampFrame::kValues),
        static_cast<network::FrameType>(membership::MemberFrame::kGoodbye)};
    header.type = type < 200 ? kTypes[type % std::size(kTypes)] : type;
    const std::uint8_t fields = input.byte();
    header.incarnation = (fields & 1) != 0 ? incarnation_ : input.number();
    header.sequence = input.number();
    header.place = input.number();
    header.detail = static_cast<std::uint32_t>(input.number());
    Bytes payload = input.bytes(fields >> 1);
    if (header.type == kJoined && (fields & 2) != 0) {
      header.incarnation += fields >> 7;
      payload = membership::encode_joined(
          1, swamp::encode(swamp::JoinedSwamp{.initialized = (fields & 4) != 0,
                                              .known = {header.sequence, header.place}}));
    }
    if (header.type == static_cast<network::FrameType>(swamp::SwampFrame::kModel) &&
        (fields & 2) != 0) {
      payload = swamp::encode_number(0.5);
    }
    if (!connected_) return;
    header.length = static_cast<std::uint32_t>(payload.size());
    try {
      const auto place = client_.place_for(header);
      if (place) {
        COHORT_CHECK(place->size() == payload.size(), "a place of another size");
        std::copy(payload.begin(), payload.end(), place->begin());
      }
      client_.on_frame(header, place ? std::span<const std::byte>(*place) : payload, now());
    } catch (const PeerError&) {
      connected_ = false;
      client_.on_lost(now());
    }
    verdicts_ += client_.take_verdicts().size();
    COHORT_CHECK(verdicts_ <= offers_, "more verdicts than offers");
    COHORT_CHECK(client_.unsent() <= offers_ - verdicts_, "offers that nobody made");
    if (client_.left()) COHORT_CHECK(verdicts_ == offers_, "a farewell before the last verdict");
    COHORT_CHECK(client_.waits_for().size() < 8192, "a text without end");
  }

  swamp::ModelValues model_;
  std::uint64_t incarnation_ = 0;
  std::uint64_t offers_ = 0;
  std::uint64_t verdicts_ = 0;
  bool connected_ = false;
  bool leaving_ = false;
  swamp::BestModelClient client_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  Input input(data, size);
  Harness harness(input.byte());
  while (!input.empty()) harness.step(input);
  return 0;
}

}  // namespace cohort
