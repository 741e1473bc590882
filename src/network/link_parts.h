// What a link is made of. Only for files of this layer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "network/channel.h"
#include "network/link.h"
#include "network/shared_rings.h"

namespace cohort::network {

// What the handshake leaves behind.
struct LinkParts {
  Channel channel;
  Identity peer;
  std::string peer_text;
  LinkOptions options;
  std::chrono::milliseconds peer_silence;  // after which the peer gives us up
  std::uint16_t lane = 0;                  // of the hello
  std::unique_ptr<SharedRings> rings;      // null: payloads go by the stream
};

}  // namespace cohort::network
