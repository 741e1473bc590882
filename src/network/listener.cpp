#include "network/listener.h"

#include <fcntl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <list>

#include "core/clock.h"
#include "core/error.h"
#include "network/local_socket.h"
#include "network/pending_connection.h"

namespace cohort::network {
namespace {

namespace asio = boost::asio;

constexpr int kAcceptedAtOnce = 16;               // before those already in are heard
constexpr std::chrono::milliseconds kPause{100};  // when the system has no descriptors left

// Counts every refusal and lets one line a second and kind through.
class RefusalLog {
 public:
  explicit RefusalLog(std::function<void(const std::string&)> log) : log_(std::move(log)) {}

  const Refusals& counts() const { return counts_; }

  void add(const std::string& from, const Refusal& refusal) {
    ++counts_[refusal.kind];
    if (refusal.later) return;  // nothing is wrong
    Line& line = lines_[refusal.kind];
    const auto now = Clock::now();
    if (line.last && now - *line.last < std::chrono::seconds(1)) {
      ++line.left_out;
      return;
    }
    std::string text = "refused a connection from " + from + ": " + refusal.detail;
    if (line.left_out > 0) text += " (and " + std::to_string(line.left_out) + " others like it)";
    line = {now, 0};
    if (log_) log_(text);
  }

 private:
  struct Line {
    std::optional<Clock::time_point> last;
    std::uint64_t left_out = 0;
  };
  std::function<void(const std::string&)> log_;
  Refusals counts_;
  std::map<std::string, Line> lines_;
};

// All of a listener but its owner's handle. Waits hold it weakly: it ends with the handle.
class ListenerCore final : public std::enable_shared_from_this<ListenerCore> {
 public:
  ListenerCore(asio::io_context& io, const ListenerOptions& options, ListenerEvents events);

  void begin();
  void stop();
  const Address& address() const { return options_.address; }
  const Refusals& refusals() const { return log_.counts(); }

 private:
  struct Door {
    asio::posix::stream_descriptor descriptor;
    bool is_unix;
  };

  void open_side_door();
  void add_door(Descriptor socket, bool is_unix);
  void wait(Door& door);
  void accept_some(Door& door);
  void let_in(Descriptor socket, const Door& door, const SocketAddress& from);
  void hand_over(std::unique_ptr<Link> link);
  void make_room();
  bool relieve(Door& door);
  void dismiss(const PendingConnection& connection);

  asio::io_context& io_;
  ListenerOptions options_;
  ListenerEvents events_;
  RefusalLog log_;
  std::unique_ptr<TlsContext> tls_;
  LocalSocket local_;
  std::list<Door> doors_;
  std::list<std::shared_ptr<PendingConnection>> pending_;  // the oldest first
  Descriptor reserve_;  // given up for a moment to send someone away when there are no others
  asio::steady_timer pause_;
  bool stopped_ = false;
};

ListenerCore::ListenerCore(asio::io_context& io, const ListenerOptions& options,
                           ListenerEvents events)
    : io_(io),
      options_(options),
      events_(std::move(events)),
      log_(events_.log),
      reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      pause_(io) {
  if (wants_tls(options_.credentials, options_.address)) {
    tls_ = std::make_unique<TlsContext>(options_.credentials, options_.self,
                                        TlsContext::End::kListens);
  }
  if (options_.address.is_unix()) {
    local_ = LocalSocket(options_.address.path);
    add_door(std::move(local_.descriptor()), true);
    return;
  }
  add_door(listen_at(options_.address), false);
  if (!options_.runtime_folder.empty() && !options_.credentials.everywhere() &&
      is_of_this_host_alone(options_.address)) {
    open_side_door();
  }
}

void ListenerCore::open_side_door() {
  make_private_folder(options_.runtime_folder);
  remove_left_sockets(options_.runtime_folder);
  const std::string path = local_socket_path(options_.runtime_folder, options_.address);
  try {
    local_ = LocalSocket(path);
    add_door(std::move(local_.descriptor()), true);
  } catch (const ConfigError& error) {
    // The port alone will do, only slower.
    if (events_.log) events_.log(error.what());
  }
}

void ListenerCore::add_door(Descriptor socket, bool is_unix) {
  doors_.push_back({asio::posix::stream_descriptor(io_, socket.get()), is_unix});
  socket.release();
}

void ListenerCore::begin() {
  for (Door& door : doors_) wait(door);
}

void ListenerCore::wait(Door& door) {
  door.descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                             [weak = weak_from_this(), &door](boost::system::error_code error) {
                               const auto self = weak.lock();
                               if (!error && self && !self->stopped_) self->accept_some(door);
                             });
}

void ListenerCore::accept_some(Door& door) {
  for (int i = 0; i < kAcceptedAtOnce && !stopped_; ++i) {
    SocketAddress from;
    from.size = sizeof from.storage;
    Descriptor socket(::accept4(door.descriptor.native_handle(), from.get(), &from.size,
                                SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      let_in(std::move(socket), door, from);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    const bool exhausted =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (exhausted && !relieve(door)) return;
  }
  if (!stopped_) wait(door);
}

// Frees a descriptor. False: there is none to be had, and accepting goes on after a pause.
bool ListenerCore::relieve(Door& door) {
  const Refusal refusal{"no descriptors left",
                        "the process has no file descriptors left; raise `ulimit -n`"};
  if (!pending_.empty()) {
    const auto oldest = pending_.front();
    log_.add(oldest->from(), refusal);
    dismiss(*oldest);
    oldest->send_away(refusal);
    return true;
  }
  reserve_.close();
  const Descriptor turned_away(
      ::accept4(door.descriptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
  if (turned_away) log_.add("someone", refusal);
  reserve_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  pause_.expires_after(kPause);
  pause_.async_wait([weak = weak_from_this(), &door](boost::system::error_code error) {
    const auto self = weak.lock();
    if (!error && self && !self->stopped_) self->wait(door);
  });
  return false;
}

void ListenerCore::let_in(Descriptor socket, const Door& door, const SocketAddress& from) {
  if (door.is_unix && !is_of_same_user(socket.get())) {
    log_.add("a Unix socket", {"another user", "it is a process of another user"});
    return;
  }
  if (pending_.size() >= kStrangers) make_room();
  // Who comes by a Unix socket is this user, which is all that TLS could show.
  const bool plain = door.is_unix && !options_.credentials.everywhere();
  const AcceptContext context{io_, options_, events_, plain ? nullptr : tls_.get()};
  const auto weak = weak_from_this();
  auto connection = std::make_shared<PendingConnection>(
      context, std::move(socket), from.text(), door.is_unix,
      PendingConnection::Outcome{.refused =
                                     [weak](PendingConnection& who, const Refusal& refusal) {
                                       const auto self = weak.lock();
                                       const auto kept = who.shared_from_this();
                                       if (self) self->log_.add(who.from(), refusal);
                                       who.send_away(refusal);
                                       if (self) self->dismiss(who);
                                     },
                                 .welcomed =
                                     [weak](PendingConnection& who, std::unique_ptr<Link> link) {
                                       const auto self = weak.lock();
                                       if (!self) return;
                                       self->dismiss(who);
                                       self->hand_over(std::move(link));
                                     }});
  pending_.push_back(connection);
  connection->begin();
}

void ListenerCore::hand_over(std::unique_ptr<Link> link) {
  const std::string who = link->peer_text();
  try {
    events_.accepted(std::move(link));
  } catch (const std::exception& error) {
    if (events_.log) events_.log("dropped " + who + ": " + error.what());
  }
}

void ListenerCore::make_room() {
  auto victim = pending_.begin();
  while (victim != pending_.end() && (*victim)->has_spoken()) ++victim;
  if (victim == pending_.end()) victim = pending_.begin();
  const auto who = *victim;
  const Refusal refusal{"too many strangers", "it gave way to newer connections"};
  log_.add(who->from(), refusal);
  who->send_away(refusal);
  dismiss(*who);
}

void ListenerCore::dismiss(const PendingConnection& connection) {
  pending_.remove_if([&](const auto& each) { return each.get() == &connection; });
}

void ListenerCore::stop() {
  stopped_ = true;
  local_.remove();
  pause_.cancel();
  boost::system::error_code ignored;
  for (Door& door : doors_) door.descriptor.close(ignored);
  for (const auto& connection : pending_) connection->send_away({});
  pending_.clear();
}

class ListenerHandle final : public Listener {
 public:
  explicit ListenerHandle(std::shared_ptr<ListenerCore> core) : core_(std::move(core)) {}
  ~ListenerHandle() override { core_->stop(); }
  const Address& address() const override { return core_->address(); }
  const Refusals& refusals() const override { return core_->refusals(); }
  void stop() override { core_->stop(); }

 private:
  std::shared_ptr<ListenerCore> core_;
};

}  // namespace

std::unique_ptr<Listener> listen(asio::io_context& io, const ListenerOptions& options,
                                 ListenerEvents events) {
  auto core = std::make_shared<ListenerCore>(io, options, std::move(events));
  core->begin();
  return std::make_unique<ListenerHandle>(std::move(core));
}

}  // namespace cohort::network
