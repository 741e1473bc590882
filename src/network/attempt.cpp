#include "network/attempt.h"

#include <cerrno>
#include <cstring>

#include "network/link_parts.h"

namespace cohort::network {
namespace {

constexpr char kWithoutAWord[] =
    "it closes the connection without a word: it belongs to another job, or one of the two wants "
    "TLS and the other does not (give both the token or certificates)";

}  // namespace

Attempt::Attempt(const ConnectorOptions& options, const TlsContext* tls, SocketAddress place,
                 Done done)
    : options_(options), tls_(tls), place_(place), done_(std::move(done)) {
  hello_ = {.self = options.self,
            .peer = options.peer,
            .shared_memory = options.shared_memory && is_unix() && tls == nullptr,
            .silence = options.links.silence,
            .lane = options.lane,
            .note = options.note};
}

Attempt::~Attempt() {
  if (connection_) connection_->close();
}

template <class Next>
EarlyConnection::Done Attempt::then(Next next) {
  return [weak = weak_from_this(), next](const std::optional<std::string>& problem) {
    const auto self = weak.lock();
    if (!self) return;
    if (!problem) return ((*self).*next)();
    const bool wordless = self->greeted_ && self->connection_->bytes_read() == 0;
    const bool distrusted = self->tls_ != nullptr && self->connection_->stream().distrusted();
    self->fail(wordless && !distrusted ? kWithoutAWord : *problem,
               wordless || self->tls_ != nullptr, distrusted);
  };
}

void Attempt::begin(boost::asio::io_context& io) {
  Descriptor socket = begin_connecting(place_);
  if (!socket) return fail(std::strerror(errno));
  connection_ = std::make_shared<EarlyConnection>(io, std::move(socket));
  connection_->wait_until_writable(then(&Attempt::connected));
}

void Attempt::connected() {
  const int socket = connection_->socket();
  if (const int error = connect_error(socket); error != 0) return fail(std::strerror(error));
  if (is_unix() && !is_of_same_user(socket)) return fail("a process of another user listens there");
  tune(socket, options_.links.silence);
  connection_->set_stream(tls_ != nullptr ? tls_->make_stream(socket)
                                          : make_plain_stream(socket, is_unix()));
  connection_->handshake(then(&Attempt::introduce));
}

void Attempt::introduce() {
  greeted_ = true;
  if (!connection_->write(encode_greeting(kHello, hello_))) {
    return fail("it closed the connection");
  }
  if (hello_.shared_memory) connection_->expect_descriptor();
  connection_->read(header_, then(&Attempt::judge_header));
}

void Attempt::judge_header() {
  const auto verdict = judge_answer_header(header_, hello_.self.job);
  if (const auto* problem = std::get_if<std::string>(&verdict)) {
    return fail(*problem);
  }
  payload_.resize(std::get<std::size_t>(verdict));
  connection_->read(payload_, then(&Attempt::judge));
}

void Attempt::judge() {
  const auto verdict = judge_answer(header_, payload_, hello_, connection_->stream().certified());
  if (const auto* welcome = std::get_if<Greeting>(&verdict)) return establish(*welcome);
  if (const auto* refused = std::get_if<Refused>(&verdict)) {
    return refused->later ? fail(refused->reason) : done_(*refused);
  }
  fail(std::get<Nonsense>(verdict).reason);
}

void Attempt::establish(const Greeting& welcome) {
  std::unique_ptr<SharedRings> rings;
  if (welcome.shared_memory) {
    rings = SharedRings::attach(connection_->take_descriptor());
    if (rings == nullptr) return fail("the memory it wants to share cannot be used");
  }
  const std::string way = rings       ? " by shared memory"
                          : is_unix() ? " by a Unix socket"
                                      : " at " + place_.text() + (tls_ != nullptr ? " by TLS" : "");
  done_(std::make_unique<Link>(LinkParts{.channel = connection_->take(),
                                         .peer = welcome.self,
                                         .peer_text = welcome.self.text() + way,
                                         .options = options_.links,
                                         .peer_silence = welcome.silence,
                                         .lane = hello_.lane,
                                         .rings = std::move(rings)}));
}

void Attempt::fail(std::string obstacle, bool other_way, bool distrusted) {
  done_(Failed{std::move(obstacle), other_way, distrusted});
}

}  // namespace cohort::network
