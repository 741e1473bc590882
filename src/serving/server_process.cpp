#include "serving/server_process.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "network/event_loop.h"

namespace cohort {
namespace {

constexpr std::chrono::milliseconds kTick{50};
// What a worker may still have to be told when the job is over.
constexpr std::chrono::milliseconds kFarewell{500};
// Of values to a worker that takes them as fast as they come; then others have their turn.
constexpr std::uint64_t kPiecesAtOnce = 16;

}  // namespace

class ServerProcess::Implementation final : private ServerPorts {
 public:
  explicit Implementation(ServerProcessOptions options) : options_(std::move(options)) {
    if (!options_.log) options_.log = [](const std::string&) {};
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
    if (snapshot) {
      log("going on from " + options_.state_dir.string() + " after update " +
          std::to_string(server_->version()));
    }
    listener_ = listen(io_, options_.listener,
                       {[this](const Identity& peer) { return admit(peer); },
                        [this](std::unique_ptr<Link> link) { accept(std::move(link)); },
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
    ServerReport report{.reason = reason_,
                        .well = server_->ended_well(),
                        .counters = server_->counters(),
                        .refusals = listener_->refusals(),
                        .bytes_sent = sent_,
                        .bytes_received = received_};
    for (const auto& [id, held] : connections_) count(*held.link, report);
    return report;
  }

 private:
  // One worker's connection, and what the link calls.
  struct Connection final : LinkHandler {
    Connection(Implementation& process, ConnectionId number, std::unique_ptr<Link> established)
        : owner(process), id(number), link(std::move(established)) {}

    std::optional<std::span<std::byte>> place_for(Link&, const FrameHeader& header) override {
      return forgotten ? std::nullopt : owner.server_->place_for(id, header);
    }
    void frame_arrived(Link&, const FrameHeader& header,
                       std::span<const std::byte> payload) override {
      if (!forgotten) owner.server_->on_frame(id, header, payload, Clock::now());
    }
    void all_sent(Link&) override {
      if (!forgotten) owner.server_->on_room(id, Clock::now());
    }
    void link_lost(Link& lost, const std::string& reason) override {
      if (!forgotten) {
        if (reason != kSaidGoodbye) owner.log("lost " + lost.peer_text() + ": " + reason);
        owner.server_->on_lost(id, Clock::now());
      }
      boost::asio::post(owner.io_, [&process = owner, number = id] { process.remove(number); });
    }

    Implementation& owner;
    ConnectionId id;
    std::unique_ptr<Link> link;
    bool forgotten = false;       // the server has closed it; only what is unsent still goes out
    Clock::time_point told = {};  // when something was heard, as the server knows
    std::uint64_t pieces = 0;     // of values, sent one after the other
  };

  std::string admit(const Identity& peer) const {
    if (peer.role != Role::kWorker) return "only workers are served here";
    if (options_.workers > 0 && peer.rank >= options_.workers) {
      return "there is no worker " + std::to_string(peer.rank) + ": this server expects " +
             std::to_string(options_.workers);
    }
    return {};
  }

  void accept(std::unique_ptr<Link> link) {
    const ConnectionId id = ++last_id_;
    Link& established = *link;
    auto connection = std::make_unique<Connection>(*this, id, std::move(link));
    Connection& handler = *connection;
    connections_.emplace(id, Held{std::move(connection), &established});
    server_->on_connected(id, established.peer().rank, Clock::now());
    established.set_handler(handler);
  }

  void remove(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    sent_ += found->second.link->bytes_sent();
    received_ += found->second.link->bytes_received();
    connections_.erase(found);
  }

  // Those the server has done with, once their last words are out.
  void remove_closed() {
    std::vector<ConnectionId> closed;
    for (const auto& [id, held] : connections_) {
      if (held.handler->forgotten && held.link->unsent() == 0) closed.push_back(id);
    }
    for (const ConnectionId id : closed) remove(id);
  }

  void tick() {
    const Clock::time_point now = Clock::now();
    for (auto& [id, held] : connections_) {
      const Clock::time_point heard = held.link->last_heard();
      if (held.handler->forgotten || heard <= held.handler->told) continue;
      held.handler->told = heard;
      server_->on_heard(id, heard);
    }
    server_->on_tick(now);
    remove_closed();
    if (!ending_ && *stop_) {
      if (!stop_at_) stop_at_ = now + options_.time_to_leave;
      const bool alone =
          std::all_of(connections_.begin(), connections_.end(),
                      [](const auto& each) { return each.second.handler->forgotten; });
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
    if (ending_ && (now >= *ending_ || connections_.empty())) {
      io_.stop();
      return;
    }
    timer_.expires_after(kTick);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) tick();
    });
  }

  static void count(const Link& link, ServerReport& report) {
    report.bytes_sent += link.bytes_sent();
    report.bytes_received += link.bytes_received();
  }

  // ServerPorts.
  void send(ConnectionId to, const FrameHeader& header, std::span<const std::byte> payload,
            Kept kept) override {
    const auto found = connections_.find(to);
    if (found != connections_.end()) found->second.link->send(header, payload, kept);
  }

  std::size_t piece_bytes(ConnectionId to) const override {
    const auto found = connections_.find(to);
    return found != connections_.end() ? found->second.link->piece_bytes() : kPieceBytes;
  }

  bool has_room(ConnectionId to) override {
    const auto found = connections_.find(to);
    if (found == connections_.end()) return true;
    if (found->second.link->unsent() > 0) return false;
    if (++found->second.handler->pieces % kPiecesAtOnce != 0) return true;
    boost::asio::post(io_, [this, to] {
      if (connections_.contains(to)) server_->on_room(to, Clock::now());
    });
    return false;
  }

  void model_changes(std::span<const std::byte> memory) override {
    for (auto& [id, held] : connections_) held.link->copy_lent(memory);
  }

  void close(ConnectionId connection, const std::string& reason) override {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    log("closing the connection of " + found->second.link->peer_text() + ": " + reason);
    found->second.handler->forgotten = true;
    found->second.link->close_after_sending();
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

  void log(const std::string& line) override { options_.log(line); }

  struct Held {
    std::unique_ptr<Connection> handler;
    Link* link;
  };

  ServerProcessOptions options_;
  boost::asio::io_context io_{1};
  boost::asio::steady_timer timer_{io_};
  const std::atomic<bool>* stop_ = nullptr;
  std::unique_ptr<ParameterServer> server_;
  std::map<ConnectionId, Held> connections_;
  ConnectionId last_id_ = 0;
  std::uint64_t sent_ = 0;  // by connections that are gone
  std::uint64_t received_ = 0;
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
