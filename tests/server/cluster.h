// A parameter server and its workers in one thread, with every frame delivered by hand: what the
// tests of the protocol drive.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "network/overlap.h"
#include "server/parameter_server.h"
#include "server/shard_client.h"

namespace cohort::server {

// Lent bytes are looked at when the frame is delivered, as a real link does.
struct Parcel {
  network::FrameHeader header;
  Bytes own;
  std::span<const std::byte> lent;
  bool is_lent = false;

  std::span<const std::byte> payload() const { return is_lent ? lent : std::span(own); }
  void copy() {
    if (!is_lent) return;
    own.assign(lent.begin(), lent.end());
    is_lent = false;
  }
};

inline Parcel parcel(const network::FrameHeader& header, std::span<const std::byte> payload,
                     network::Kept kept) {
  Parcel made{.header = header, .own = {}, .lent = payload, .is_lent = true};
  if (kept == network::Kept::kCopy) made.copy();
  return made;
}

class Cluster : public ServerPorts {
 public:
  struct Step {  // what a worker did, and what came of it
    std::vector<float> gradients;
    std::uint64_t base = 0;
    PushOutcome outcome;
  };

  struct Worker : ClientPorts {
    std::unique_ptr<ShardClient> client;
    std::optional<membership::ConnectionId> connection;
    std::deque<Parcel> to_server;
    std::deque<Parcel> to_worker;
    std::vector<float> values, gradients;
    enum class Phase { kFirstPull, kReady, kPushing, kLeaving } phase = Phase::kFirstPull;
    bool initial_given = false;
    bool silent = false;
    std::vector<Step> steps;

    void send(const network::FrameHeader& header, std::span<const std::byte> payload,
              network::Kept kept) override {
      to_server.push_back(parcel(header, payload, kept));
    }
  };

  explicit Cluster(JobSpec given, ServerOptions server_options = {},
                   std::int64_t least_part = ClientOptions().min_part)
      : spec(std::move(given)), options(server_options), min_part(least_part) {
    const auto size = static_cast<std::size_t>(spec.size);
    initial.assign(size, 0.0F);
    workers.resize(static_cast<std::size_t>(spec.workers));
    start_server(nullptr);
    for (Rank rank = 0; rank < spec.workers; ++rank) start_worker(rank);
  }

  void start_server(const ServerSnapshot* snapshot) {
    ++options.seed;
    options.log = [this](const std::string& line) { lines.push_back(line); };
    server = std::make_unique<ParameterServer>(options, *this, snapshot);
  }

  void crash_server() {
    for (Rank rank = 0; rank < spec.workers; ++rank) disconnect(rank);
    server.reset();
    persisting.clear();
  }

  void restart_server() { start_server(durable ? &*durable : nullptr); }

  void start_worker(Rank rank, membership::JoinKind kind = membership::JoinKind::kAnew) {
    auto& worker = workers[static_cast<std::size_t>(rank)];
    worker = std::make_unique<Worker>();
    worker->values.assign(static_cast<std::size_t>(spec.size), -1.0F);
    worker->gradients = worker->values;
    ClientOptions client_options;
    client_options.worker = rank;
    client_options.spec = spec;
    client_options.join = kind;
    client_options.window_bytes = window_bytes;
    client_options.min_part = min_part;
    worker->client = std::make_unique<ShardClient>(client_options, *worker);
  }

  Worker& at(Rank rank) { return *workers[static_cast<std::size_t>(rank)]; }
  ShardClient& client(Rank rank) { return *at(rank).client; }

  void connect(Rank rank) {
    Worker& worker = at(rank);
    worker.connection = ++last_connection;
    owner[last_connection] = rank;
    server->on_connected(last_connection, rank, now);
    worker.client->on_connected(now);
  }
  void connect_all() {
    for (Rank rank = 0; rank < spec.workers; ++rank) {
      if (!at(rank).connection) connect(rank);
    }
  }

  // Both sides notice; what was on its way is gone.
  void disconnect(Rank rank) {
    Worker& worker = at(rank);
    if (!worker.connection) return;
    const membership::ConnectionId connection = *worker.connection;
    worker.connection.reset();
    worker.to_server.clear();
    worker.to_worker.clear();
    if (server) server->on_lost(connection, now);
    worker.client->on_lost(now);
  }

  // One frame to the server; whether there was one.
  bool deliver_to_server(Rank rank) {
    Worker& worker = at(rank);
    if (worker.to_server.empty() || !worker.connection) return false;
    const Parcel frame = std::move(worker.to_server.front());
    worker.to_server.pop_front();
    const membership::ConnectionId connection = *worker.connection;
    try {
      auto place = server->place_for(connection, frame.header);
      std::span<const std::byte> payload = frame.payload();
      if (place && !payload.empty()) {
        std::memcpy(place->data(), payload.data(), payload.size());
        payload = *place;
      }
      server->on_frame(connection, frame.header, payload, now);
    } catch (const PeerError& error) {
      errors.push_back(error.what());
      disconnect(rank);
    }
    return true;
  }

  bool deliver_to_worker(Rank rank) {
    Worker& worker = at(rank);
    if (worker.to_worker.empty()) return false;
    const Parcel frame = std::move(worker.to_worker.front());
    worker.to_worker.pop_front();
    try {
      auto place = worker.client->place_for(frame.header);
      std::span<const std::byte> payload = frame.payload();
      if (place && !payload.empty()) {
        std::memcpy(place->data(), payload.data(), payload.size());
        payload = *place;
      }
      worker.client->on_frame(frame.header, payload, now);
    } catch (const PeerError& error) {
      errors.push_back(error.what());
      disconnect(rank);
    }
    if (server && worker.connection && worker.to_worker.empty()) {
      server->on_room(*worker.connection, now);
    }
    return true;
  }

  bool finish_persist() {
    if (persisting.empty()) return false;
    durable = std::move(persisting.front());
    persisting.pop_front();
    server->on_persisted(durable->id, now);
    return true;
  }

  // Until no frame is on its way and no snapshot is being written.
  void materialize() {
    for (bool any = true; any;) {
      any = false;
      for (Rank rank = 0; rank < spec.workers; ++rank) {
        while (deliver_to_server(rank)) any = true;
        while (deliver_to_worker(rank)) any = true;
      }
      while (auto_persist && finish_persist()) any = true;
    }
  }

  // Time goes by, in ticks of 100 ms, with a heartbeat of all that are connected and not silent.
  void pass(std::chrono::milliseconds time) {
    for (auto gone = std::chrono::milliseconds(0); gone < time;
         gone += std::chrono::milliseconds(100)) {
      now += std::chrono::milliseconds(100);
      for (const auto& worker : workers) {
        if (worker->connection && !worker->silent) server->on_heard(*worker->connection, now);
      }
      server->on_tick(now);
    }
  }

  // Joins, and gets the values. Worker 0 brings `initial`.
  void begin() {
    connect_all();
    materialize();
    for (Rank rank = 0; rank < spec.workers; ++rank) advance(rank);
    materialize();
    for (Rank rank = 0; rank < spec.workers; ++rank) advance(rank);
  }

  // What the worker's owner would do next; whether there was anything to do.
  bool advance(Rank rank, int steps_wanted = -1) {
    Worker& worker = at(rank);
    ShardClient& client = *worker.client;
    switch (worker.phase) {
      case Worker::Phase::kFirstPull:
        if (!client.membership().joined() && !worker.initial_given) return false;
        if (!worker.initial_given) {
          if (rank == 0 && client.needs_values()) client.initialize(initial, {}, {});
          worker.initial_given = true;
          client.pull(worker.values);
          return true;
        }
        if (!client.pulled()) return false;
        worker.phase = Worker::Phase::kReady;
        return true;
      case Worker::Phase::kReady:
        if (steps_wanted >= 0 &&
            (static_cast<int>(worker.steps.size()) >= steps_wanted || client.finished())) {
          client.leave();
          worker.phase = Worker::Phase::kLeaving;
          return true;
        }
        if (steps_wanted < 0) return false;
        start_step(rank);
        return true;
      case Worker::Phase::kPushing:
        return end_step(rank);
      case Worker::Phase::kLeaving:
        return false;
    }
    return false;
  }

  void start_step(Rank rank) {
    Worker& worker = at(rank);
    gradient(rank, static_cast<int>(worker.steps.size()), worker.values, worker.gradients);
    worker.steps.push_back(
        {.gradients = worker.gradients, .base = worker.client->version(), .outcome = {}});
    worker.client->begin_push(worker.gradients);
    if (ahead) worker.client->pull(worker.values);
    for (int part = 1; part <= parts; ++part) worker.client->extend_push(spec.size * part / parts);
    if (!ahead) worker.client->pull(worker.values);
    worker.phase = Worker::Phase::kPushing;
  }

  bool end_step(Rank rank) {
    Worker& worker = at(rank);
    if (!worker.client->push_outcome() || !worker.client->pulled()) return false;
    worker.steps.back().outcome = *worker.client->push_outcome();
    worker.phase = Worker::Phase::kReady;
    return true;
  }

  // All workers take `steps` steps in turn, everything delivered in between.
  void train(int steps) {
    for (int guard = 0; guard < 100 * (steps + 10); ++guard) {
      bool any = false;
      for (Rank rank = 0; rank < spec.workers; ++rank) any = advance(rank, steps) || any;
      materialize();
      if (!any) break;
    }
  }

  // One event: what a worker's owner does, a frame, or a snapshot on disk; whether there was any.
  bool one_event(int steps, int persist_every) {
    ++events;
    const bool persists = persist_every > 0 && events % persist_every == 0;
    if (persists && server && finish_persist()) return true;
    for (Rank turn = 0; turn < spec.workers; ++turn) {
      const Rank rank = static_cast<Rank>((events + turn) % spec.workers);
      if (advance(rank, steps) || deliver_to_worker(rank) || deliver_to_server(rank)) return true;
    }
    return server && finish_persist();
  }
  bool all_left() const {
    return std::all_of(workers.begin(), workers.end(),
                       [](const auto& worker) { return worker->client->membership().left(); });
  }

  // ServerPorts
  void send(membership::ConnectionId to, const network::FrameHeader& header,
            std::span<const std::byte> payload, network::Kept kept) override {
    ++sent[static_cast<ServerFrame>(header.type)];
    Worker& worker = at(owner.at(to));
    if (worker.connection == to) worker.to_worker.push_back(parcel(header, payload, kept));
  }
  std::size_t piece_bytes(membership::ConnectionId) const override { return piece * sizeof(float); }
  bool has_room(membership::ConnectionId to) override {
    const Worker& worker = at(owner.at(to));
    return worker.connection != to || worker.to_worker.size() < most_queued;
  }
  void model_changes(std::span<const std::byte> memory) override {
    for (const auto& worker : workers) {
      for (Parcel& frame : worker->to_worker) {
        if (!frame.is_lent || !network::overlap(frame.lent, memory)) continue;
        ++copies;
        frame.copy();
      }
    }
  }
  void version_changes() override {
    ++version_changes_seen;
    history[server->version()] = server->parameters();
  }
  void close(membership::ConnectionId connection, const std::string& reason) override {
    lines.push_back(reason);
    const Rank rank = owner.at(connection);
    if (at(rank).connection == connection) closing.push_back(rank);
  }
  void persist(ServerSnapshot snapshot) override { persisting.push_back(std::move(snapshot)); }

  // The workers notice that the server has closed.
  void notice_closed() {
    for (const Rank rank : std::exchange(closing, {})) {
      while (deliver_to_worker(rank)) {
      }
      disconnect(rank);
    }
  }

  JobSpec spec;
  ServerOptions options;
  std::int64_t min_part;
  std::size_t window_bytes = std::size_t{256} << 20;
  std::unique_ptr<ParameterServer> server;
  std::vector<std::unique_ptr<Worker>> workers;
  std::map<membership::ConnectionId, Rank> owner;
  membership::ConnectionId last_connection = 0;
  Deadline now = Deadline(std::chrono::hours(1));
  std::vector<float> initial;
  std::deque<ServerSnapshot> persisting;
  std::optional<ServerSnapshot> durable;
  bool auto_persist = true;
  int parts = 1;       // in which a push becomes ready
  bool ahead = false;  // values are asked for before the push
  std::map<ServerFrame, int> sent;
  std::vector<std::string> lines, errors;
  std::vector<Rank> closing;
  int version_changes_seen = 0;
  int copies = 0;                                       // of values that were lent
  std::map<std::uint64_t, std::vector<float>> history;  // the model, of all versions but the last
  std::size_t piece = kPieceBytes / sizeof(float);      // elements of values in a frame
  std::size_t most_queued = static_cast<std::size_t>(-1);  // frames to a worker
  int events = 0;
  std::function<void(Rank, int, std::span<const float>, std::span<float>)> gradient =
      [](Rank rank, int step, std::span<const float> values, std::span<float> out) {
        for (std::size_t i = 0; i < out.size(); ++i) {
          const auto target = static_cast<float>((i * 7 + static_cast<std::size_t>(rank)) % 11);
          out[i] = 0.1F * (values[i] - target) + 0.01F * static_cast<float>(step % 5);
        }
      };
};

}  // namespace cohort::server
