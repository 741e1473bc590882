#include "serving/server_process.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "core/error.h"
#include "membership/server_loop.h"
#include "network/event_loop.h"

namespace cohort::serving {
namespace {

// Of values to a worker that takes them as fast as they come; then others have their turn.
constexpr std::uint64_t kPiecesAtOnce = 16;

// Of values, to one worker.
struct Pieces {
  std::uint64_t sent = 0;
};

}  // namespace

class ServerProcess::Implementation final : private server::ServerPorts {
 public:
  explicit Implementation(ServerProcessOptions options) : options_(std::move(options)) {
    std::optional<server::ServerSnapshot> snapshot;
    if (!options_.state_dir.empty()) {
      store_ = std::make_unique<SnapshotStore>(options_.state_dir);
      snapshot = store_->load([&](const std::string& text) { log("warning: " + text); });
    }
    options_.server.keeps_state = store_ != nullptr;
    options_.server.server = options_.listener.self.rank;
    server::ServerPorts& ports = *this;
    server_ = std::make_unique<server::ParameterServer>(options_.server, ports,
                                                        snapshot ? &*snapshot : nullptr);
    if (snapshot) {
      log("going on from " + options_.state_dir.string() + " after update " +
          std::to_string(server_->version()));
    }
    loop_.listen(*server_, options_.listener, options_.workers);
  }

  ~Implementation() override {
    store_.reset();  // its thread posts to the loop
  }

  const network::Address& address() const { return loop_.listener().address(); }

  ServerReport run(const std::atomic<bool>& stop) {
    loop_.start(stop, options_.time_to_leave, {});
    network::run_with_spin(loop_.io());
    const Traffic traffic = loop_.links().traffic();
    return ServerReport{.reason = loop_.reason(),
                        .well = server_->ended_well(),
                        .counters = server_->counters(),
                        .refusals = loop_.listener().refusals(),
                        .bytes_sent = traffic.sent,
                        .bytes_received = traffic.received};
  }

 private:
  // ServerPorts.
  void send(membership::ConnectionId to, const network::FrameHeader& header,
            std::span<const std::byte> payload, network::Kept kept) override {
    if (auto* const held = loop_.links().find(to)) held->link->send(header, payload, kept);
  }

  std::size_t piece_bytes(membership::ConnectionId to) const override {
    const auto* const held = loop_.links().find(to);
    return held != nullptr ? held->link->piece_bytes() : server::kPieceBytes;
  }

  bool has_room(membership::ConnectionId to) override {
    auto* const held = loop_.links().find(to);
    if (held == nullptr) return true;
    if (held->link->unsent() > 0) return false;
    if (++held->extra.sent % kPiecesAtOnce != 0) return true;
    boost::asio::post(loop_.io(), [this, to] {
      if (loop_.links().find(to) != nullptr) server_->on_room(to, Clock::now());
    });
    return false;
  }

  void model_changes(std::span<const std::byte> memory) override {
    for (const auto& [id, held] : loop_.links().all()) held->link->copy_lent(memory);
  }

  void close(membership::ConnectionId connection, const std::string& reason) override {
    loop_.links().close(connection, reason);
  }

  void persist(server::ServerSnapshot snapshot) override {
    store_->write(std::move(snapshot), loop_.persisted());
  }

  void log(const std::string& line) const {
    if (options_.server.log) options_.server.log(line);
  }

  ServerProcessOptions options_;
  std::unique_ptr<server::ParameterServer> server_;
  membership::ServerLoop<server::ParameterServer, Pieces> loop_{
      [this](const std::string& line) { log(line); }};
  std::unique_ptr<SnapshotStore> store_;  // last: its thread ends first
};

ServerProcess::ServerProcess(ServerProcessOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}

ServerProcess::~ServerProcess() = default;

const network::Address& ServerProcess::address() const { return implementation_->address(); }

ServerReport ServerProcess::run(const std::atomic<bool>& stop) {
  return implementation_->run(stop);
}

}  // namespace cohort::serving
