#include "serving/server_process.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "core/error.h"
#include "network/event_loop.h"
#include "network/server_links.h"

namespace cohort {
namespace {

constexpr std::chrono::milliseconds kTick{50};
// What a worker may still have to be told when the job is over.
constexpr std::chrono::milliseconds kFarewell{500};
// Of values to a worker that takes them as fast as they come; then others have their turn.
constexpr std::uint64_t kPiecesAtOnce = 16;

// Of values, to one worker.
struct Pieces {
  std::uint64_t sent = 0;
};

}  // namespace

class ServerProcess::Implementation final : private ServerPorts {
 public:
  explicit Implementation(ServerProcessOptions options) : options_(std::move(options)) {
    std::optional<ServerSnapshot> snapshot;
    if (!options_.state_dir.empty()) {
      store_ = std::make_unique<SnapshotStore>(options_.state_dir);
      snapshot = store_->load([&](const std::string& text) { log("warning: " + text); });
    }
    options_.server.keeps_state = store_ != nullptr;
    options_.server.server = options_.listener.self.rank;
    ServerPorts& ports = *this;
    server_ =
        std::make_unique<ParameterServer>(options_.server, ports, snapshot ? &*snapshot : nullptr);
    links_.serve(*server_);
    if (snapshot) {
      log("going on from " + options_.state_dir.string() + " after update " +
          std::to_string(server_->version()));
    }
    listener_ =
        listen(io_, options_.listener,
               {[this](const Greeting& hello) { return admit_worker(hello, options_.workers); },
                [this](std::unique_ptr<Link> link) { links_.accept(std::move(link)); },
                [this](const std::string& line) { log(line); }});
  }

  ~Implementation() override {
    store_.reset();  // its thread posts to the loop
  }

  const Address& address() const { return listener_->address(); }

  ServerReport run(const std::atomic<bool>& stop) {
    stop_ = &stop;
    tick();
    run_with_spin(io_);
    const Traffic traffic = links_.traffic();
    return ServerReport{.reason = reason_,
                        .well = server_->ended_well(),
                        .counters = server_->counters(),
                        .refusals = listener_->refusals(),
                        .bytes_sent = traffic.sent,
                        .bytes_received = traffic.received};
  }

 private:
  void tick() {
    const Clock::time_point now = Clock::now();
    links_.report_heard();
    server_->on_tick(now);
    links_.remove_gone();
    if (!ending_ && *stop_) {
      if (!stop_at_) stop_at_ = now + options_.time_to_leave;
      const bool alone = std::all_of(links_.all().begin(), links_.all().end(),
                                     [](const auto& each) { return each.second->closed; });
      if (alone || now >= *stop_at_) {
        reason_ = "stopped by a signal, " + server_->text();
        io_.stop();
        return;
      }
    }
    if (const auto why = server_->finished(); why && !ending_) {
      reason_ = *why;
      ending_ = now + kFarewell;
      listener_->stop();
    }
    if (ending_ && (now >= *ending_ || links_.all().empty())) {
      io_.stop();
      return;
    }
    timer_.expires_after(kTick);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) tick();
    });
  }

  // ServerPorts.
  void send(ConnectionId to, const FrameHeader& header, std::span<const std::byte> payload,
            Kept kept) override {
    if (auto* const held = links_.find(to)) held->link->send(header, payload, kept);
  }

  std::size_t piece_bytes(ConnectionId to) const override {
    const auto* const held = links_.find(to);
    return held != nullptr ? held->link->piece_bytes() : kPieceBytes;
  }

  bool has_room(ConnectionId to) override {
    auto* const held = links_.find(to);
    if (held == nullptr) return true;
    if (held->link->unsent() > 0) return false;
    if (++held->extra.sent % kPiecesAtOnce != 0) return true;
    boost::asio::post(io_, [this, to] {
      if (links_.find(to) != nullptr) server_->on_room(to, Clock::now());
    });
    return false;
  }

  void model_changes(std::span<const std::byte> memory) override {
    for (const auto& [id, held] : links_.all()) held->link->copy_lent(memory);
  }

  void close(ConnectionId connection, const std::string& reason) override {
    links_.close(connection, reason);
  }

  void persist(ServerSnapshot snapshot) override {
    store_->write(std::move(snapshot), [this](std::uint64_t id, const std::string& failure) {
      boost::asio::post(io_, [this, id, failure] {
        if (failure.empty()) {
          server_->on_persisted(id, Clock::now());
        } else {
          server_->on_persist_failed(id, failure, Clock::now());
        }
      });
    });
  }

  void log(const std::string& line) const {
    if (options_.server.log) options_.server.log(line);
  }

  ServerProcessOptions options_;
  boost::asio::io_context io_{1};
  boost::asio::steady_timer timer_{io_};
  const std::atomic<bool>* stop_ = nullptr;
  std::unique_ptr<ParameterServer> server_;
  ServerLinks<ParameterServer, Pieces> links_{[this](const std::string& line) { log(line); }};
  std::string reason_;
  std::optional<Clock::time_point> ending_;
  std::optional<Clock::time_point> stop_at_;  // at the latest
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<SnapshotStore> store_;  // last: its thread ends first
};

ServerProcess::ServerProcess(ServerProcessOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}

ServerProcess::~ServerProcess() = default;

const Address& ServerProcess::address() const { return implementation_->address(); }

ServerReport ServerProcess::run(const std::atomic<bool>& stop) {
  return implementation_->run(stop);
}

}  // namespace cohort
