// One link of a lane: messages cut into frames, one message after the other, then a farewell.
//
//   message   detail the tag, sequence the message's number on this link from 0, place how many of
//             its bytes come in later frames
//   goodbye   nothing follows; who gets it hangs up
//
// Everything happens on the thread of the link.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "network/link.h"
#include "transport/transport.h"

namespace cohort::transport {

// A message on its way out. Short ones are owned; the bytes of a long one are its sender's, who
// waits.
class TcpOutgoing {
 public:
  TcpOutgoing(Tag tag, std::span<const std::byte> lent) : tag_(tag), bytes_(lent) {}
  TcpOutgoing(Tag tag, Bytes own) : tag_(tag), own_(std::move(own)), bytes_(own_) {}

  enum class State { kQueued, kSent, kLost, kOwned };

  // Until its bytes are no longer needed, or `deadline`.
  State wait_until(Deadline deadline);
  // After own_now() was posted: as long as the link's thread, which never waits itself, takes.
  State wait();

  // On the link's thread:
  Tag tag() const { return tag_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  void resolve(State state);
  void own_now();  // copies what is lent, so that the sender may go

 private:
  const Tag tag_;
  Bytes own_;
  std::span<const std::byte> bytes_;
  std::mutex mutex_;  // guards the next two
  std::condition_variable changed_;
  State state_ = State::kQueued;
};

class TcpWire final : public network::LinkHandler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void message_arrived(TcpWire& wire, Tag tag, Bytes payload) = 0;
    virtual void wire_ended(TcpWire& wire, const std::string& reason) = 0;  // once
  };

  // `accepted`: the peer connected.
  TcpWire(boost::asio::io_context& io, std::unique_ptr<network::Link> link, Owner& owner,
          bool accepted);
  TcpWire(const TcpWire&) = delete;
  TcpWire& operator=(const TcpWire&) = delete;

  const network::Identity& peer() const { return link_->peer(); }
  std::string peer_text() const { return link_->peer_text(); }
  bool ended() const { return ended_; }
  // The peer connected, and not a byte has followed its greeting.
  bool has_not_spoken() const { return accepted_ && link_->bytes_received() == 0; }

  void send(std::shared_ptr<TcpOutgoing> message);

  // Sends what is queued, then goodbye. It ends when the peer hangs up.
  void finish();

  // Ends it, unless it has. The link itself goes with this object.
  void end(const std::string& reason);

  std::optional<std::span<std::byte>> place_for(network::Link& link,
                                                const network::FrameHeader& header) override;
  void frame_arrived(network::Link& link, const network::FrameHeader& header,
                     std::span<const std::byte> payload) override;
  void link_lost(network::Link&, const std::string& reason) override { end(reason); }

 private:
  void pump();
  void pump_later();
  void part();
  void check_message(const network::FrameHeader& header) const;
  void take_message(const network::FrameHeader& header);

  Owner& owner_;
  std::unique_ptr<network::Link> link_;
  boost::asio::steady_timer again_;
  const bool accepted_;
  bool finishing_ = false;
  bool said_goodbye_ = false;
  bool heard_goodbye_ = false;
  bool ended_ = false;

  std::deque<std::shared_ptr<TcpOutgoing>> queue_;
  std::size_t sent_ = 0;  // bytes of the first in the queue
  std::uint64_t messages_sent_ = 0;
  std::uint64_t messages_received_ = 0;
  Bytes incoming_;                   // as far as it has come
  std::uint64_t still_to_come_ = 0;  // of it
};

}  // namespace cohort::transport
