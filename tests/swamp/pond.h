// A best-model server and its workers in one thread, with every frame, examination and snapshot
// delivered by hand: what the tests of the protocol drive.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "swamp/best_model_client.h"
#include "swamp/best_model_server.h"

namespace cohort::swamp {

class Pond final : public SwampServerPorts {
 public:
  struct Parcel {
    network::FrameHeader header;
    Bytes payload;
  };

  struct Worker final : SwampClientPorts {
    void send(const network::FrameHeader& header, std::span<const std::byte> payload,
              const ModelValues&) override {
      out.push_back({header, {payload.begin(), payload.end()}});
    }
    Rank rank = 0;
    std::unique_ptr<BestModelClient> client;
    std::optional<membership::ConnectionId> connection;
    std::deque<Parcel> out;
    std::deque<Parcel> in;
    std::string closed;  // why the server has closed its connection
  };

  struct Examined {
    std::uint64_t ticket = 0;
    ModelValues model;
    std::uint64_t draw = 0;
  };

  explicit Pond(int count, bool keeps_state = false, const std::string& policy = "validated") {
    spec.workers = count;
    spec.values = 4;
    spec.policy = policy;
    settings.keeps_state = keeps_state;
    start_server();
    for (Rank rank = 0; rank < count; ++rank) start_worker(rank);
  }

  static ModelValues model(float value) {
    return std::make_shared<const std::vector<float>>(4, value);
  }

  void start_server() {
    ++settings.seed;
    settings.log = [this](const std::string& line) { lines.push_back(line); };
    server = std::make_unique<BestModelServer>(settings, *this, disk ? &*disk : nullptr);
  }
  void crash_server() {
    server.reset();
    examining.reset();
    writing.reset();
    for (auto& worker : workers) drop(*worker);
    start_server();
  }

  // Another process in that place; the old one stays.
  Worker& start_worker(Rank rank) {
    workers.push_back(std::make_unique<Worker>());
    Worker& worker = *workers.back();
    worker.rank = rank;
    worker.client = std::make_unique<BestModelClient>(rank, spec, worker);
    return worker;
  }
  Worker& at(std::size_t which) { return *workers[which]; }
  BestModelClient& client(std::size_t which) { return *at(which).client; }

  void connect(Worker& worker) {
    worker.connection = ++last_connection;
    server->on_connected(last_connection, worker.rank, now);
    worker.client->on_connected(now);
  }

  // Both sides notice; what was on its way is gone.
  void drop(Worker& worker) {
    if (!worker.connection) return;
    const membership::ConnectionId connection = *worker.connection;
    worker.connection.reset();
    worker.in.clear();
    worker.out.clear();
    if (server) server->on_lost(connection, now);
    worker.client->on_lost(now);
  }

  // One frame to the server; whether there was one.
  bool deliver_out(Worker& worker) {
    if (!worker.connection || worker.out.empty()) return false;
    const Parcel parcel = std::move(worker.out.front());
    worker.out.pop_front();
    server->on_frame(*worker.connection, parcel.header, parcel.payload, now);
    return true;
  }
  bool deliver_in(Worker& worker) {
    if (worker.in.empty()) return false;
    const Parcel parcel = std::move(worker.in.front());
    worker.in.pop_front();
    worker.client->on_frame(parcel.header, parcel.payload, now);
    return true;
  }
  // All frames there are, both ways, until there are none.
  void commit() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < workers.size(); ++i) {
        while (deliver_out(at(i))) more = true;
        while (deliver_in(at(i))) more = true;
      }
    }
  }

  // Everybody joins and has the values of worker 0.
  void begin(float initial = 100) {
    for (auto& worker : workers) {
      if (worker->rank == 0) worker->client->initialize(model(initial));
      worker->client->pull(PullKind::kStart, 0);
      connect(*worker);
    }
    commit();
    while (writing) {
      write();
      commit();
    }
  }

  // The examiner finds this loss on both of its samples.
  void examine(float loss) {
    const Examined done = *examining;
    examining.reset();
    server->on_examined(done.ticket, std::vector<float>{loss, loss}, now);
  }
  void write() {
    const std::uint64_t id = writing->id;
    disk = std::move(writing);
    writing.reset();
    server->on_persisted(id, now);
  }
  void fail_to_write() {
    const std::uint64_t id = writing->id;
    writing.reset();
    server->on_persist_failed(id, "no space", now);
  }

  // Time passes; all whose connection stands are heard, but for the silent.
  void pass(std::chrono::milliseconds time, const std::vector<Rank>& silent = {}) {
    for (const Deadline end = now + time; now < end;) {
      now += std::chrono::milliseconds(50);
      for (const auto& worker : workers) {
        const bool quiet = std::find(silent.begin(), silent.end(), worker->rank) != silent.end();
        if (worker->connection && !quiet) server->on_heard(*worker->connection, now);
      }
      server->on_tick(now);
    }
  }

  // Offers and delivers.
  std::uint64_t offer(std::size_t which, float value, double claim) {
    const std::uint64_t number = client(which).offer(model(value), claim);
    commit();
    return number;
  }

  // SwampServerPorts
  void send(membership::ConnectionId to, const network::FrameHeader& header,
            std::span<const std::byte> payload, const ModelValues&) override {
    for (auto& worker : workers) {
      if (worker->connection == to) {
        worker->in.push_back({header, {payload.begin(), payload.end()}});
      }
    }
  }
  void close(membership::ConnectionId connection, const std::string& reason) override {
    for (auto& worker : workers) {
      if (worker->connection != connection) continue;
      worker->closed = reason;
      while (deliver_in(*worker)) continue;
      worker->connection.reset();
      worker->out.clear();
      worker->client->on_lost(now);
    }
  }
  void examine(std::uint64_t ticket, const ModelValues& given, std::uint64_t draw) override {
    examining = Examined{ticket, given, draw};
    ++examinations;
  }
  void persist(SwampSnapshot snapshot) override { writing = std::move(snapshot); }
  void accepted(const BestRecord&) override { ++acceptances; }

  SwampSpec spec;
  SwampServerSettings settings;
  Deadline now = Deadline{} + std::chrono::hours(1);
  std::unique_ptr<BestModelServer> server;
  std::vector<std::unique_ptr<Worker>> workers;
  membership::ConnectionId last_connection = 0;
  std::optional<Examined> examining;
  std::optional<SwampSnapshot> writing;
  std::optional<SwampSnapshot> disk;
  int examinations = 0;
  int acceptances = 0;
  std::vector<std::string> lines;
};

}  // namespace cohort::swamp
