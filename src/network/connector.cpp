#include "network/connector.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "network/attempt.h"
#include "network/listener.h"
#include "network/local_socket.h"

namespace cohort::network {
namespace {

namespace asio = boost::asio;

// One may be somebody else who has the address for a moment; several in a row are a mistake.
constexpr int kMaxDistrusted = 5;
constexpr std::chrono::milliseconds kFirstPause{5};

SocketAddress as_socket_address(const asio::ip::tcp::endpoint& endpoint) {
  SocketAddress address;
  address.size = static_cast<socklen_t>(endpoint.size());
  std::memcpy(&address.storage, endpoint.data(), endpoint.size());
  return address;
}

// All of a connector but its owner's handle. Waits hold it weakly: it ends with the handle.
class ConnectorCore final : public std::enable_shared_from_this<ConnectorCore> {
 public:
  ConnectorCore(asio::io_context& io, const ConnectorOptions& options, Deadline deadline,
                std::function<void(std::unique_ptr<Link>)> connected,
                std::function<void(const ConnectFailure&)> failed);

  void begin();
  void stop();
  const std::string& obstacle() const { return obstacle_; }

 private:
  void watch_deadline();
  void begin_round();
  void resolve();
  void try_next();
  void attempt_ended(Attempt::Result result);
  void note(const Attempt::Failed& failure);
  void pause();
  void wait(std::chrono::milliseconds time);  // then a round begins
  void make_tls();
  void end(ConnectFailure::Kind kind, const std::string& reason);
  std::string peer_text() const;

  asio::io_context& io_;
  ConnectorOptions options_;
  Deadline deadline_;
  std::function<void(std::unique_ptr<Link>)> connected_;
  std::function<void(const ConnectFailure&)> failed_;
  bool must_encrypt_;
  bool encrypt_;
  std::unique_ptr<TlsContext> tls_;  // made when it is first needed
  bool look_for_unix_ = false;
  asio::steady_timer overall_;
  asio::steady_timer timer_;  // of an attempt, or of the pause after a round
  asio::ip::tcp::resolver resolver_;
  std::vector<SocketAddress> places_;  // yet to be tried in this round
  std::shared_ptr<Attempt> attempt_;
  std::string obstacle_ = "nobody answered";
  std::chrono::milliseconds pause_ = kFirstPause;
  int distrusted_ = 0;  // attempts in a row
  bool over_ = false;
};

ConnectorCore::ConnectorCore(asio::io_context& io, const ConnectorOptions& options,
                             Deadline deadline,
                             std::function<void(std::unique_ptr<Link>)> connected,
                             std::function<void(const ConnectFailure&)> failed)
    : io_(io),
      options_(options),
      deadline_(deadline),
      connected_(std::move(connected)),
      failed_(std::move(failed)),
      must_encrypt_(wants_tls(options_.credentials, options_.address)),
      encrypt_(must_encrypt_),
      overall_(io),
      timer_(io),
      resolver_(io) {
  if (options_.note.size() > kMaxNoteBytes) {
    throw ConfigError("what this process would say of itself is " +
                      std::to_string(options_.note.size()) + " bytes long, and may be " +
                      std::to_string(kMaxNoteBytes) + ": shorten COHORT_HOST");
  }
  if (must_encrypt_) make_tls();
  look_for_unix_ = !options_.credentials.everywhere() && !options_.address.is_unix() &&
                   !options_.runtime_folder.empty() && is_of_this_host_alone(options_.address);
  if (options_.address.is_unix()) unix_address(options_.address.path);
}

void ConnectorCore::make_tls() {
  tls_ =
      std::make_unique<TlsContext>(options_.credentials, options_.self, TlsContext::End::kConnects);
}

void ConnectorCore::begin() {
  watch_deadline();
  wait(options_.first_pause);
}

void ConnectorCore::watch_deadline() {
  overall_.expires_at(deadline_);
  overall_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (!error && self) {
      self->end(ConnectFailure::Kind::kDeadline,
                self->peer_text() + " could not be reached in time: " + self->obstacle_);
    }
  });
}

void ConnectorCore::begin_round() {
  if (over_) return;
  places_.clear();
  if (options_.address.is_unix()) {
    places_.push_back(unix_address(options_.address.path));
    return try_next();
  }
  const std::string path = local_socket_path(options_.runtime_folder, options_.address);
  if (look_for_unix_ && fits_unix_address(path) && is_private_folder(options_.runtime_folder) &&
      ::access(path.c_str(), F_OK) == 0) {
    places_.push_back(unix_address(path));
  }
  boost::system::error_code unknown;
  const auto number = asio::ip::make_address(options_.address.host, unknown);
  if (unknown) return resolve();
  places_.push_back(as_socket_address({number, options_.address.port}));
  try_next();
}

void ConnectorCore::resolve() {
  resolver_.async_resolve(
      options_.address.host, std::to_string(options_.address.port),
      [weak = weak_from_this()](boost::system::error_code error,
                                const asio::ip::tcp::resolver::results_type& found) {
        const auto self = weak.lock();
        if (!self || self->over_) return;
        if (error) self->obstacle_ = "the host is not known (" + error.message() + ")";
        const auto first = self->places_.size();
        for (const auto& entry : found) {
          self->places_.push_back(as_socket_address(entry.endpoint()));
        }
        // In the order in which listeners choose (sockets.cpp).
        std::stable_partition(
            self->places_.begin() + static_cast<std::ptrdiff_t>(first), self->places_.end(),
            [](const SocketAddress& place) { return place.storage.ss_family == AF_INET; });
        self->try_next();
      });
}

void ConnectorCore::try_next() {
  if (places_.empty()) return pause();
  const SocketAddress place = places_.front();
  places_.erase(places_.begin());
  const auto weak = weak_from_this();
  const bool of_folder = place.storage.ss_family == AF_UNIX && !options_.address.is_unix();
  attempt_ = std::make_shared<Attempt>(options_, encrypt_ && !of_folder ? tls_.get() : nullptr,
                                       place, [weak](Attempt::Result result) {
                                         const auto self = weak.lock();
                                         if (self && !self->over_) {
                                           self->attempt_ended(std::move(result));
                                         }
                                       });
  timer_.expires_after(kStrangerTime);
  timer_.async_wait([weak](boost::system::error_code error) {
    const auto self = weak.lock();
    if (!error && self && !self->over_) {
      self->attempt_ended(Attempt::Failed{"it accepts connections but says nothing"});
    }
  });
  attempt_->begin(io_);
}

void ConnectorCore::attempt_ended(Attempt::Result result) {
  const auto ended = std::move(attempt_);  // until this returns: it may be the caller
  timer_.cancel();
  if (auto* link = std::get_if<std::unique_ptr<Link>>(&result)) {
    auto connected = std::move(connected_);
    stop();
    return connected(std::move(*link));
  }
  if (const auto* refused = std::get_if<Refused>(&result)) {
    return end(ConnectFailure::Kind::kRefused,
               peer_text() + " refuses " + options_.self.text() + ": " + refused->reason);
  }
  const auto& failure = std::get<Attempt::Failed>(result);
  note(failure);
  distrusted_ = failure.distrusted ? distrusted_ + 1 : 0;
  if (must_encrypt_ && !options_.returning && distrusted_ == kMaxDistrusted) {
    return end(ConnectFailure::Kind::kRefused,
               peer_text() + " and " + options_.self.text() + " do not trust each other (" +
                   obstacle_ + "): give all processes of the job the same token, or certificates " +
                   "of one --tls-dir");
  }
  asio::post(io_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && !self->over_) self->try_next();
  });
}

void ConnectorCore::note(const Attempt::Failed& failure) {
  obstacle_ = failure.obstacle;
  // A listener of all interfaces encrypts for those of its own host too, which cannot know.
  if (must_encrypt_ || !failure.other_way || !options_.credentials.any()) return;
  try {
    if (tls_ == nullptr) make_tls();
    encrypt_ = !encrypt_;
  } catch (const Error& error) {
    obstacle_ += std::string("; and not by TLS: ") + error.what();
  }
}

void ConnectorCore::pause() {
  wait(pause_);
  pause_ = std::min(2 * pause_, std::chrono::milliseconds(kRetryPause));
}

void ConnectorCore::wait(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (!error && self) self->begin_round();
  });
}

void ConnectorCore::end(ConnectFailure::Kind kind, const std::string& reason) {
  auto failed = std::move(failed_);
  stop();
  failed({kind, reason});
}

void ConnectorCore::stop() {
  over_ = true;
  overall_.cancel();
  timer_.cancel();
  resolver_.cancel();
  attempt_.reset();
}

std::string ConnectorCore::peer_text() const {
  return options_.peer.text() + " at " + options_.address.text();
}

class ConnectorHandle final : public Connector {
 public:
  explicit ConnectorHandle(std::shared_ptr<ConnectorCore> core) : core_(std::move(core)) {}
  ~ConnectorHandle() override { core_->stop(); }

  std::string obstacle() const override { return core_->obstacle(); }

 private:
  std::shared_ptr<ConnectorCore> core_;
};

}  // namespace

std::unique_ptr<Connector> connect(asio::io_context& io, const ConnectorOptions& options,
                                   Deadline deadline,
                                   std::function<void(std::unique_ptr<Link>)> connected,
                                   std::function<void(const ConnectFailure&)> failed) {
  auto core = std::make_shared<ConnectorCore>(io, options, deadline, std::move(connected),
                                              std::move(failed));
  core->begin();
  return std::make_unique<ConnectorHandle>(std::move(core));
}

}  // namespace cohort::network
