// A conversation with a server on the worker's side, as the connection below it sees that.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/clock.h"
#include "membership/membership_client.h"
#include "network/frame.h"

namespace cohort::membership {

class ConversationClient {
 public:
  virtual ~ConversationClient() = default;

  virtual void on_connected(Deadline now) = 0;
  virtual std::optional<std::span<std::byte>> place_for(const network::FrameHeader& header) = 0;
  // Throws PeerError when the server breaks the protocol: the owner then drops the connection.
  virtual void on_frame(const network::FrameHeader& header, std::span<const std::byte> payload,
                        Deadline now) = 0;
  virtual void on_lost(Deadline now) = 0;
  virtual const MembershipClient& membership() const = 0;  // whether it is joined, refused, left
  // What it waits for, for messages: "its turn in round 12", "the initial values of worker 0".
  virtual std::string waits_for() const = 0;
};

}  // namespace cohort::membership
