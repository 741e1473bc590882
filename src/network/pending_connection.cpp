#include "network/pending_connection.h"

#include <algorithm>

#include "network/link_parts.h"
#include "network/little_endian.h"

namespace cohort::network {
namespace {

constexpr std::size_t kMagicBytes = 4;

}  // namespace

PendingConnection::PendingConnection(const AcceptContext& context, Descriptor socket,
                                     std::string from, bool is_unix, Outcome outcome)
    : context_(context),
      from_(std::move(from)),
      is_unix_(is_unix),
      outcome_(std::move(outcome)),
      connection_(std::make_shared<EarlyConnection>(context.io, std::move(socket))),
      timer_(context.io) {}

// What comes next, when the step has gone well and the connection has not been sent away meanwhile.
template <class Next>
EarlyConnection::Done PendingConnection::then(Next next) {
  return [weak = weak_from_this(), next](const std::optional<std::string>& problem) {
    const auto self = weak.lock();
    if (!self) return;
    if (!problem) return ((*self).*next)();
    const bool in_tls = self->context_.tls != nullptr && !self->is_secure_;
    self->refuse({in_tls ? "TLS handshake failed" : "closed early", *problem});
  };
}

void PendingConnection::begin() {
  timer_.expires_after(kStrangerTime);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->refuse({"silent", "it did not introduce itself within " +
                                std::to_string(kStrangerTime.count()) + " s"});
  });
  // What TLS needs is not allocated for those who say nothing.
  connection_->wait_until_readable(then(&PendingConnection::secure));
}

void PendingConnection::secure() {
  has_spoken_ = true;
  const int socket = connection_->socket();
  connection_->set_stream(context_.tls != nullptr ? context_.tls->make_stream(socket)
                                                  : make_plain_stream(socket, is_unix_));
  connection_->handshake(then(&PendingConnection::read_magic));
}

void PendingConnection::read_magic() {
  is_secure_ = true;
  connection_->read(std::span(header_).first(kMagicBytes), then(&PendingConnection::read_header));
}

void PendingConnection::read_header() {
  // Whoever speaks another protocol may wait for an answer before it says as much as a header.
  if (get_number<std::uint32_t>(header_.data()) != kFrameMagic) return read_greeting();
  connection_->read(std::span(header_).subspan(kMagicBytes),
                    then(&PendingConnection::read_greeting));
}

void PendingConnection::read_greeting() {
  const auto verdict = judge_header(header_, context_.options.self.job);
  if (const auto* refusal = std::get_if<Refusal>(&verdict)) return refuse(*refusal);
  const std::size_t length = std::get<std::size_t>(verdict);
  payload_.resize(length + padding_after(length));
  connection_->read(payload_, then(&PendingConnection::answer));
}

void PendingConnection::answer() {
  const auto verdict =
      judge_hello(header_, payload_, context_.options.self, connection_->stream().certified());
  if (const auto* refusal = std::get_if<Refusal>(&verdict)) return refuse(*refusal);
  const auto& hello = std::get<Greeting>(verdict);
  Objection objection;
  try {
    if (context_.events.admit) objection = context_.events.admit(hello);
  } catch (const std::exception& error) {
    objection.reason = error.what();
  }
  if (objection.reason.empty()) return welcome(hello);
  refuse({objection.later ? "not yet" : "not admitted", objection.reason, true, objection.later});
}

void PendingConnection::welcome(const Greeting& hello) {
  Descriptor memory;
  std::unique_ptr<SharedRings> rings;
  if (hello.shared_memory && context_.options.shared_memory && is_unix_ &&
      context_.tls == nullptr) {
    rings = SharedRings::create(memory);
  }
  const auto frame = encode_greeting(kWelcome, {.self = context_.options.self,
                                                .peer = hello.self,
                                                .shared_memory = rings != nullptr,
                                                .silence = context_.options.links.silence});
  const bool said = rings ? send_with_descriptor(connection_->socket(), frame, memory.get())
                          : connection_->write(frame);
  if (!said) return refuse({"closed early", "it went away before it was welcomed"});
  tune(connection_->socket(), context_.options.links.silence);
  timer_.cancel();
  const std::string way = rings      ? " by shared memory"
                          : is_unix_ ? " by a Unix socket"
                                     : " at " + from_ + (context_.tls != nullptr ? " by TLS" : "");
  outcome_.welcomed(*this, std::make_unique<Link>(LinkParts{.channel = connection_->take(),
                                                            .peer = hello.self,
                                                            .peer_text = hello.self.text() + way,
                                                            .options = context_.options.links,
                                                            .peer_silence = hello.silence,
                                                            .lane = hello.lane,
                                                            .rings = std::move(rings)}));
}

void PendingConnection::send_away(const Refusal& refusal) {
  timer_.cancel();
  if (refusal.tell) {
    static_cast<void>(connection_->write(
        encode_refusal(context_.options.self.job, refusal.detail, refusal.later)));
  }
  connection_->close();
}

void PendingConnection::refuse(const Refusal& refusal) { outcome_.refused(*this, refusal); }

}  // namespace cohort::network
