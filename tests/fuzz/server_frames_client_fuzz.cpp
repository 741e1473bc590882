// A worker's side of the conversation with a parameter server that says anything: the bytes are
// frames, lost connections, and what the owner asks for in between. The client throws nothing but
// PeerError, and writes nowhere but where its owner said.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/error.h"
#include "input.h"
#include "server/messages.h"
#include "server/shard_client.h"

namespace cohort {
namespace {

constexpr std::int64_t kSize = 24;

server::ClientOptions make_options(std::uint8_t choice) {
  server::ClientOptions options;
  options.worker = (choice & 4) != 0 ? 1 : 0;
  options.spec.workers = 3;
  options.spec.size = kSize;
  options.spec.mode = static_cast<server::ServerMode>(choice % 3);
  if ((choice & 8) != 0) options.spec.wire = server::WireFormat::kFloat16;
  options.window_bytes = (choice & 16) != 0 ? 200 : 4096;
  return options;
}

class Harness final : public server::ClientPorts {
 public:
  explicit Harness(std::uint8_t choice)
      : gradients_(kSize, 0.5F), values_(kSize), client_(make_options(choice), *this) {}

  void step(Input& input) {
    switch (input.byte() % 8) {
      case 0:
        return connect();
      case 1:
        connected_ = false;
        return client_.on_lost(now());
      case 2:
        return push(input.byte());
      case 3:
        if (!pushing_) client_.pull(values_, input.byte() % 2 == 0 ? 0 : server::kExactParameters);
        return;
      case 4:
        if (!pushing_ && input.byte() % 8 == 0) client_.leave();
        return;
      default:
        return frame(input);
    }
  }

  void send(const network::FrameHeader& header, std::span<const std::byte> payload,
            network::Kept) override {
    COHORT_CHECK(connected_, "a frame without a connection");
    COHORT_CHECK(payload.size() <= network::kMaxPayload, "a payload over the bound");
    incarnation_ = header.incarnation;
  }

 private:
  static Deadline now() { return Deadline{} + std::chrono::hours(1); }

  void connect() {
    if (connected_) return;
    connected_ = true;
    client_.on_connected(now());
    if (client_.needs_values()) client_.initialize(gradients_, {}, {});
  }

  void push(std::uint8_t count) {
    if (!pushing_) {
      const bool open = begun_ && !client_.push_outcome();
      if (open || client_.membership().incarnation() == 0) return;
      client_.begin_push(gradients_);
      begun_ = pushing_ = true;
      final_ = 0;
    }
    final_ = std::min<std::int64_t>(kSize, final_ + count);
    client_.extend_push(final_);
    pushing_ = final_ < kSize;
  }

  void frame(Input& input) {
    network::FrameHeader header;
    const std::uint8_t type = input.byte();
    constexpr auto kJoined = static_cast<network::FrameType>(membership::MemberFrame::kJoined);
    constexpr network::FrameType kTypes[] = {
        kJoined,
        static_cast<network::FrameType>(membership::MemberFrame::kRefused),
        static_cast<network::FrameType>(membership::MemberFrame::kFenced),
        static_cast<network::FrameType>(server::ServerFrame::kAck),
        static_cast<network::FrameType>(server::ServerFrame::kDropped),
        static_cast<network::FrameType>(server::ServerFrame::kRejected),
        static_cast<network::FrameType>(server::ServerFrame::kDurable),
        static_cast<network::FrameType>(server::ServerFrame::kValues),
        static_cast<network::FrameType>(server::ServerFrame::kFinished),
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
          1, server::encode(server::JoinedBody{.applied = header.sequence,
                                               .durable = header.place,
                                               .version = header.detail,
                                               .progress = 0,
                                               .initialized = (fields & 4) != 0,
                                               .keeps_state = (fields & 8) != 0,
                                               .applied_before = 1,
                                               .in_model_before = (fields & 16) != 0}));
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
    COHORT_CHECK(client_.waits_for().size() < 8192, "a text without end");
  }

  std::vector<float> gradients_;
  std::vector<float> values_;
  server::ShardClient client_;
  std::uint64_t incarnation_ = 0;
  std::int64_t final_ = 0;
  bool connected_ = false;
  bool begun_ = false;
  bool pushing_ = false;
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
