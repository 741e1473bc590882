#include "transport/tcp_wire.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "transport/mailbox.h"
#include "transport/tcp.h"

namespace cohort::transport {
namespace {

constexpr network::FrameType kMessage = network::kFirstFreeType;
constexpr network::FrameType kFarewell = network::kFirstFreeType + 1;

// What a link may hold of a message while the rest stays with its sender.
constexpr std::size_t kWindow = std::size_t{4} << 20;
constexpr std::chrono::microseconds kPumpPause{200};

}  // namespace

TcpOutgoing::State TcpOutgoing::wait_until(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [this] { return state_ != State::kQueued; });
  return state_;
}

TcpOutgoing::State TcpOutgoing::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return state_ != State::kQueued; });
  return state_;
}

void TcpOutgoing::resolve(State state) {
  // Notified under the lock: the waiting sender may let go of its share right after.
  const std::lock_guard lock(mutex_);
  if (state_ == State::kQueued) state_ = state;
  changed_.notify_all();
}

void TcpOutgoing::own_now() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kQueued) return;
  own_.assign(bytes_.begin(), bytes_.end());
  bytes_ = own_;
  state_ = State::kOwned;
  changed_.notify_all();
}

TcpWire::TcpWire(boost::asio::io_context& io, std::unique_ptr<network::Link> link, Owner& owner,
                 bool accepted)
    : owner_(owner), link_(std::move(link)), again_(io), accepted_(accepted) {
  link_->set_handler(*this);
}

void TcpWire::send(std::shared_ptr<TcpOutgoing> message) {
  if (ended_ || finishing_) {
    message->resolve(TcpOutgoing::State::kLost);
    return;
  }
  queue_.push_back(std::move(message));
  pump();
}

void TcpWire::pump() {
  while (!ended_ && !queue_.empty() && link_->unsent() < kWindow) {
    TcpOutgoing& message = *queue_.front();
    const std::size_t size = std::min(link_->piece_bytes(), message.bytes().size() - sent_);
    network::FrameHeader header;
    header.type = kMessage;
    header.detail = message.tag();
    header.sequence = messages_sent_;
    header.place = message.bytes().size() - sent_ - size;
    link_->send(header, message.bytes().subspan(sent_, size));
    if (ended_) return;  // the link was lost by that
    sent_ += size;
    if (header.place != 0) continue;
    ++messages_sent_;
    sent_ = 0;
    message.resolve(TcpOutgoing::State::kSent);
    queue_.pop_front();
  }
  if (ended_) return;
  if (!queue_.empty()) {
    pump_later();
  } else if (finishing_) {
    part();
  }
}

void TcpWire::pump_later() {
  again_.expires_after(kPumpPause);
  again_.async_wait([this](const boost::system::error_code& error) {
    if (!error) pump();
  });
}

void TcpWire::part() {
  if (!said_goodbye_) {
    said_goodbye_ = true;
    network::FrameHeader header;
    header.type = kFarewell;
    link_->send(header, {});
  }
  // When both have said it, one hangs up and the other waits for that, so that neither loses what
  // the other sent before.
  if (ended_ || !heard_goodbye_ || !accepted_) return;
  if (link_->unsent() == 0) {
    end(kClosed);
  } else {
    pump_later();
  }
}

void TcpWire::finish() {
  if (finishing_) return;
  finishing_ = true;
  pump();
}

void TcpWire::end(const std::string& reason) {
  if (ended_) return;
  ended_ = true;
  again_.cancel();
  // The owner first: whose message is lost asks why.
  owner_.wire_ended(*this, reason);
  for (const auto& message : queue_) message->resolve(TcpOutgoing::State::kLost);
  queue_.clear();
}

void TcpWire::check_message(const network::FrameHeader& header) const {
  if (header.sequence != messages_received_ || header.place > kTcpMaxMessage - header.length) {
    throw PeerError("sent a message out of order or too long");
  }
  const bool fits = still_to_come_ == 0 || still_to_come_ == header.length + header.place;
  if (!fits || (header.length == 0 && header.place > 0)) {
    throw PeerError("sent parts of a message that do not fit together");
  }
}

std::optional<std::span<std::byte>> TcpWire::place_for(network::Link&,
                                                       const network::FrameHeader& header) {
  if (header.type != kMessage) return std::nullopt;
  check_message(header);
  if (incoming_.empty()) incoming_.reserve(header.length + header.place);
  // Grown by frames, so that what resize() clears is still in the cache when the payload comes.
  const std::size_t begin = incoming_.size();
  incoming_.resize(begin + header.length);
  return std::span(incoming_).subspan(begin);
}

void TcpWire::frame_arrived(network::Link&, const network::FrameHeader& header,
                            std::span<const std::byte>) {
  if (ended_) return;
  switch (header.type) {
    case kMessage:
      return take_message(header);
    case kFarewell:
      heard_goodbye_ = true;
      if (!finishing_) return end(kClosed);
      return pump();
    default:
      throw PeerError("sent a frame of an unknown type");
  }
}

void TcpWire::take_message(const network::FrameHeader& header) {
  if (header.length == 0) check_message(header);  // of which place_for() was not asked
  still_to_come_ = header.place;
  if (still_to_come_ != 0) return;
  ++messages_received_;
  owner_.message_arrived(*this, header.detail, std::exchange(incoming_, {}));
}

}  // namespace cohort::transport
