#include "network/link.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "network/frame_reader.h"
#include "network/handshake.h"
#include "network/link_parts.h"
#include "network/send_queue.h"
#include "network/sockets.h"

namespace cohort::network {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kTurnBytes = 1 << 20;  // after which other links have their turn
// Of 256 KiB and less TCP carries a quarter less; a ring has room for four of its own.
constexpr std::size_t kPieceOfStream = 512 << 10;
constexpr std::size_t kPieceInRing = 256 << 10;
constexpr std::size_t kPieces = 64;  // of memory, in one call to the system
constexpr std::chrono::milliseconds kQuickestHeartbeat{10};

std::string seconds_text(std::chrono::milliseconds time) {
  const auto tenths = time.count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

// Everything of a link that must stay until the last wait for it has ended, which is later than
// the owner's wish to be rid of it: each wait holds a share of it.
class LinkCore final : public std::enable_shared_from_this<LinkCore>, private FrameSink {
 public:
  explicit LinkCore(LinkParts parts)
      : parts_(std::move(parts)),
        local_(is_on_this_host(parts_.channel.descriptor.native_handle())),
        heartbeat_(std::max(kQuickestHeartbeat,
                            std::min(parts_.options.silence, parts_.peer_silence) / 3)),
        reader_(parts_.peer.job, !parts_.channel.stream->protects(),
                parts_.rings ? &parts_.rings->reader() : nullptr),
        queue_(!parts_.channel.stream->protects(),
               parts_.rings ? &parts_.rings->writer() : nullptr),
        timer_(parts_.channel.descriptor.get_executor()) {}

  const LinkParts& parts() const { return parts_; }
  bool local() const { return local_; }
  std::size_t unsent() const {
    return state_ == State::kOver ? 0 : queue_.bytes() + parts_.channel.stream->unsent();
  }
  std::uint64_t bytes_sent() const { return pushed_ - queue_.bytes(); }
  std::uint64_t bytes_received() const { return received_; }
  Clock::time_point last_heard() const { return heard_; }

  void set_handler(Link& link, LinkHandler& handler);
  void send(FrameHeader& header, std::span<const std::byte> first, Kept kept,
            std::span<const std::byte> second);
  void send_ahead(FrameHeader& header);
  void copy_lent(std::span<const std::byte> memory) { queue_.copy_lent(memory); }
  void close_after_sending();
  void abandon();

 private:
  enum class State {
    kOpen,
    kClosing,  // the goodbye is said; what comes is thrown away
    kOver,     // the socket is closed
  };

  std::optional<std::span<std::byte>> place_for(const FrameHeader& header) override;
  bool frame_arrived(const FrameHeader& header, std::span<const std::byte> payload) override;
  void ring_has_room() override { push_own(kRoom); }

  void count_wire();
  void push_own(FrameType type);
  void wait_to_read();
  void wait_to_write();
  void read_turn();
  bool accept(std::size_t bytes);
  void flush();
  void go_on_sending();
  void write_turn();
  void schedule();
  void tick();
  void lose(const std::string& reason);
  void finish();
  void notify();

  LinkParts parts_;
  bool local_;
  std::chrono::milliseconds heartbeat_;
  FrameReader reader_;
  SendQueue queue_;
  asio::steady_timer timer_;
  Link* link_ = nullptr;
  LinkHandler* handler_ = nullptr;
  State state_ = State::kOpen;
  std::string lost_;  // why, when it is to be told
  bool waits_to_read_ = false;
  bool waits_to_write_ = false;
  Clock::time_point closing_since_ = {};
  Clock::time_point heard_ = Clock::now();
  Clock::time_point sent_ = Clock::now();
  std::uint64_t pushed_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t wire_sent_ = 0;  // of the stream, as far as it is metered
  std::uint64_t wire_received_ = 0;
};

// After every call of the stream's.
void LinkCore::count_wire() {
  if (!parts_.options.meter) return;
  const Stream& stream = *parts_.channel.stream;
  TrafficMeter& meter = *parts_.options.meter;
  meter.wire_sent += stream.wire_sent() - std::exchange(wire_sent_, stream.wire_sent());
  meter.wire_received +=
      stream.wire_received() - std::exchange(wire_received_, stream.wire_received());
}

void LinkCore::set_handler(Link& link, LinkHandler& handler) {
  const bool first = handler_ == nullptr;
  link_ = &link;
  handler_ = &handler;
  if (!first) return;
  if (!lost_.empty()) notify();
  if (state_ == State::kOver) return;
  heard_ = Clock::now();
  // Something may have come with the greeting and wait here, decrypted.
  asio::post(timer_.get_executor(), [self = shared_from_this()] { self->read_turn(); });
  schedule();
}

void LinkCore::send(FrameHeader& header, std::span<const std::byte> first, Kept kept,
                    std::span<const std::byte> second) {
  const std::size_t length = first.size() + second.size();
  COHORT_CHECK(length <= kMaxPayload, "a payload longer than kMaxPayload");
  if (state_ != State::kOpen) return;
  header.length = static_cast<std::uint32_t>(length);
  header.job = parts_.peer.job;
  header.checksum = 0;
  pushed_ += queue_.push(header, first, second);
  if (parts_.options.meter) {
    parts_.options.meter->sent += length;
    if (parts_.rings && fits_ring(length)) parts_.options.meter->wire_sent += length;
  }
  // One that sends much for long without returning to the loop would otherwise leave the peer idle.
  if (!waits_to_write_ || length >= kRingPayload) flush();
  if (state_ == State::kOver) return;
  queue_.keep(kept);
  if (queue_.copied_bytes() > parts_.options.max_unsent) {
    lose("it does not read: " + std::to_string(queue_.copied_bytes()) + " bytes wait for it");
  }
}

void LinkCore::send_ahead(FrameHeader& header) {
  if (state_ != State::kOpen) return;
  header.length = 0;
  header.job = parts_.peer.job;
  header.checksum = 0;
  queue_.push_first(header);
  pushed_ += kFrameHeaderBytes;
  if (!waits_to_write_) flush();
}

void LinkCore::push_own(FrameType type) {
  if (state_ == State::kOver) return;
  FrameHeader header;
  header.type = type;
  header.job = parts_.peer.job;
  if (parts_.rings && type != kGoodbye) {
    queue_.push_first(header);
  } else {
    queue_.push(header, {}, {});
  }
  pushed_ += kFrameHeaderBytes;
  if (!waits_to_write_) flush();
}

std::optional<std::span<std::byte>> LinkCore::place_for(const FrameHeader& header) {
  if (header.type < kFirstFreeType) {
    const bool known = header.type == kHeartbeat || header.type == kGoodbye || header.type == kRoom;
    if (!known || header.length > 0) {
      throw PeerError("it sent a frame of type " + std::to_string(header.type) +
                      ", which has no place here");
    }
  }
  if (header.length == 0 || state_ != State::kOpen) return std::nullopt;
  return handler_->place_for(*link_, header);
}

bool LinkCore::frame_arrived(const FrameHeader& header, std::span<const std::byte> payload) {
  const bool by_ring = parts_.rings && fits_ring(payload.size());
  received_ += kFrameHeaderBytes + payload.size() + (by_ring ? 0 : padding_after(payload.size()));
  if (parts_.options.meter) {
    parts_.options.meter->received += payload.size();
    if (by_ring) parts_.options.meter->wire_received += payload.size();
  }
  if (header.type == kGoodbye) {
    lose(kSaidGoodbye);
  } else if (header.type == kRoom) {
    if (!waits_to_write_) go_on_sending();
  } else if (header.type != kHeartbeat && state_ == State::kOpen) {
    handler_->frame_arrived(*link_, header, payload);
  }
  return state_ != State::kOver;
}

void LinkCore::wait_to_read() {
  if (state_ == State::kOver) return;
  parts_.channel.stream->expect(reader_.awaited());
  if (waits_to_read_) return;
  waits_to_read_ = true;
  parts_.channel.descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                       [self = shared_from_this()](boost::system::error_code) {
                                         self->waits_to_read_ = false;
                                         self->read_turn();
                                       });
}

void LinkCore::wait_to_write() {
  if (waits_to_write_ || state_ == State::kOver) return;
  waits_to_write_ = true;
  parts_.channel.descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                       [self = shared_from_this()](boost::system::error_code) {
                                         self->waits_to_write_ = false;
                                         self->go_on_sending();
                                       });
}

void LinkCore::read_turn() {
  std::size_t turn = 0;
  while (state_ != State::kOver) {
    const auto room = reader_.room();
    const IoResult result = parts_.channel.stream->read(room[0], room[1]);
    count_wire();
    if (result.status == IoResult::Status::kWantRead) break;
    if (result.status != IoResult::Status::kDone) {
      return lose(result.status == IoResult::Status::kEnd ? "the connection ended without a goodbye"
                                                          : parts_.channel.stream->failure());
    }
    heard_ = Clock::now();
    const std::uint64_t before = received_;
    if (!accept(result.bytes)) return;
    if (result.bytes < room[0].size() + room[1].size()) break;
    turn += std::max<std::uint64_t>(result.bytes, received_ - before);
    if (turn >= kTurnBytes) {
      asio::post(timer_.get_executor(), [self = shared_from_this()] { self->read_turn(); });
      return;
    }
  }
  wait_to_read();
}

bool LinkCore::accept(std::size_t bytes) {
  std::optional<std::string> refusal;
  try {
    refusal = reader_.accept(bytes, *this);
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  if (refusal) lose(*refusal);
  return state_ != State::kOver;
}

void LinkCore::flush() {
  try {
    write_turn();
  } catch (const std::exception& error) {
    lose(error.what());
  }
  if (state_ == State::kClosing && unsent() == 0) {
    ::shutdown(parts_.channel.descriptor.native_handle(), SHUT_WR);
  }
}

// What had to wait.
void LinkCore::go_on_sending() {
  flush();
  if (state_ != State::kOpen || handler_ == nullptr || unsent() > 0) return;
  try {
    handler_->all_sent(*link_);
  } catch (const std::exception& error) {
    lose(error.what());
  }
}

void LinkCore::write_turn() {
  std::array<iovec, kPieces> space;
  for (std::size_t turn = 0; state_ != State::kOver;) {
    const auto pieces = queue_.next(space);
    if (pieces.empty() && parts_.channel.stream->unsent() == 0) return;
    const IoResult result = parts_.channel.stream->write(pieces);
    count_wire();
    switch (result.status) {
      case IoResult::Status::kDone:
        queue_.sent(result.bytes);
        sent_ = Clock::now();
        turn += result.bytes;
        if (turn < kTurnBytes) break;
        return wait_to_write();
      case IoResult::Status::kWantWrite:
        return wait_to_write();
      case IoResult::Status::kWantRead:
      case IoResult::Status::kEnd:
      case IoResult::Status::kFailed:
        return lose(parts_.channel.stream->failure());
    }
  }
}

void LinkCore::schedule() {
  const auto now = Clock::now();
  const auto beat = sent_ + heartbeat_;
  timer_.expires_at(
      std::min(heard_ + parts_.options.silence, beat > now ? beat : now + heartbeat_));
  timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
    if (!error && self->state_ != State::kOver) self->tick();
  });
}

void LinkCore::tick() {
  // Bytes may lie there unread because they are fewer than expected, over a slow network, or
  // because this process itself was kept from running.
  if (reader_.awaited() > 1 || Clock::now() - heard_ >= parts_.options.silence) read_turn();
  if (state_ == State::kOver) return;
  if (state_ == State::kClosing && Clock::now() - closing_since_ >= parts_.options.silence) {
    return finish();  // however much it still has to say
  }
  if (Clock::now() - heard_ >= parts_.options.silence) {
    return lose("nothing was heard from it for " + seconds_text(parts_.options.silence));
  }
  const bool idle = queue_.empty() || queue_.ring_is_full();
  if (state_ == State::kOpen && idle && Clock::now() - sent_ >= heartbeat_) push_own(kHeartbeat);
  if (state_ != State::kOver) schedule();
}

void LinkCore::close_after_sending() {
  if (state_ != State::kOpen) return;
  state_ = State::kClosing;
  closing_since_ = Clock::now();
  reader_.forget_place();
  if (handler_ == nullptr) {  // nothing was awaited so far
    heard_ = Clock::now();
    wait_to_read();
    schedule();
  }
  push_own(kGoodbye);
}

void LinkCore::abandon() {
  link_ = nullptr;
  handler_ = nullptr;
  if (state_ == State::kOpen) finish();
  if (state_ == State::kClosing) queue_.copy_lent();
}

void LinkCore::lose(const std::string& reason) {
  if (state_ == State::kOver) return;
  const bool tell = state_ == State::kOpen;
  finish();
  if (!tell) return;
  lost_ = reason;
  if (handler_ != nullptr) notify();
}

void LinkCore::finish() {
  state_ = State::kOver;
  pushed_ -= queue_.bytes();
  queue_.clear();
  timer_.cancel();
  boost::system::error_code ignored;
  parts_.channel.descriptor.close(ignored);
}

// Never from within a call of the owner's, who may be in the middle of something.
void LinkCore::notify() {
  asio::post(timer_.get_executor(), [self = shared_from_this()] {
    if (self->handler_ == nullptr) return;
    try {
      self->handler_->link_lost(*self->link_, self->lost_);
    } catch (const std::exception&) {
      // There is no link left to end.
    }
  });
}

Link::Link(LinkParts parts) : core_(std::make_shared<LinkCore>(std::move(parts))) {}
Link::~Link() { core_->abandon(); }

const Identity& Link::peer() const { return core_->parts().peer; }
std::uint16_t Link::lane() const { return core_->parts().lane; }
std::string Link::peer_text() const { return core_->parts().peer_text; }
bool Link::local() const { return core_->local(); }
std::size_t Link::piece_bytes() const {
  return core_->parts().rings ? kPieceInRing : kPieceOfStream;
}
std::size_t Link::unsent() const { return core_->unsent(); }
Clock::time_point Link::last_heard() const { return core_->last_heard(); }
std::uint64_t Link::bytes_sent() const { return core_->bytes_sent(); }
std::uint64_t Link::bytes_received() const { return core_->bytes_received(); }

void Link::set_handler(LinkHandler& handler) { core_->set_handler(*this, handler); }
void Link::send(FrameHeader header, std::span<const std::byte> payload, Kept kept,
                std::span<const std::byte> second) {
  core_->send(header, payload, kept, second);
}
void Link::send_ahead(FrameHeader header) { core_->send_ahead(header); }
void Link::copy_lent(std::span<const std::byte> memory) { core_->copy_lent(memory); }
void Link::close_after_sending() { core_->close_after_sending(); }

}  // namespace cohort::network
