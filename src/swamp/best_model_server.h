// A best-model server without sockets, threads, clock and disk: frames, losses and time go in,
// frames, examinations and snapshots come out. The same object runs behind Asio, under the
// simulator and under the fuzzer.
//
// What it promises (docs/protocol.md has the argument for each):
//   - An offer is examined at most once for each (incarnation, sequence) in a server's life, and
//     answered with one verdict, over reconnects and repeated frames.
//   - Where state is kept, an acceptance is on disk before a verdict or a pull tells of it; a
//     restarted server has the last accepted model, its version and its score. Versions grow.
//   - Neither offers nor pulls wait for an examination or for the disk; a pull during either gives
//     the best model before it.
//   - A worker that is silent for `evict_after` is given up: nobody waits for it. It may come back.
//     Models that it had offered whole are judged all the same. A worker whose place another
//     process has taken changes nothing any more.
//   - Nothing that waits is dropped at the end: the server ends when all is judged.
//   - It holds at most one model for each worker that is there, those that wait (the policy bounds
//     them), one that is being examined, the initial one and what the policy keeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/types.h"
#include "membership/roster.h"
#include "network/frame.h"
#include "swamp/best_model.h"
#include "swamp/messages.h"
#include "swamp/swamp_report.h"
#include "swamp/swamp_spec.h"

namespace cohort::swamp {

// All that survives a crash, at one moment. Made by the server, kept by its ports.
struct SwampSnapshot {
  std::uint64_t id = 0;            // counts up
  std::string state = {};          // a JSON document: specification, scores, table of workers
  ModelValues model = {};          // the best, or the initial values; null: neither
  std::vector<float> losses = {};  // of the best on single samples, where the policy keeps them
};

// What the server does to the world. Called from within its methods; must not call back.
class SwampServerPorts {
 public:
  virtual ~SwampServerPorts() = default;

  // `payload` is copied, unless `owner` is given: then it lies in that model, which is kept until
  // the frame is sent.
  virtual void send(membership::ConnectionId to, const network::FrameHeader& header,
                    std::span<const std::byte> payload, const ModelValues& owner) = 0;
  // Closes after what was sent has gone out. The server forgets the connection at once.
  virtual void close(membership::ConnectionId connection, const std::string& reason) = 0;
  // Examines it; then on_examined(ticket) or on_not_examined(ticket) must be called, later, not
  // from here. One at a time.
  virtual void examine(std::uint64_t ticket, const ModelValues& model, std::uint64_t draw) = 0;
  // Writes it; then on_persisted(id) or on_persist_failed(id), likewise. One at a time. Never
  // called when keeps_state is false.
  virtual void persist(SwampSnapshot snapshot) = 0;
  // The best model is another one now, and durable.
  virtual void accepted(const BestRecord& best) = 0;
};

struct SwampServerSettings : membership::MembershipOptions {
  bool keeps_state = false;
  // An acceptance that could not be written is tried again so often, then refused.
  int persist_tries = 10;
  std::string told = {};      // differences_from_told() of swamp_spec.h
  PolicyOptions policy = {};  // its hysteresis comes from the job
  Seed seed = 0;              // for lineage and incarnations: another at every start
};

class BestModelServer {
 public:
  // `ports` outlives the server. `snapshot`: what a server of this job kept, to go on from. Throws
  // FileError when that is not sound.
  BestModelServer(const SwampServerSettings& settings, SwampServerPorts& ports,
                  const SwampSnapshot* snapshot = nullptr);
  ~BestModelServer();
  BestModelServer(const BestModelServer&) = delete;
  BestModelServer& operator=(const BestModelServer&) = delete;

  // An authenticated worker has connected. Connection ids are never used twice.
  void on_connected(membership::ConnectionId connection, Rank worker, Deadline now);
  // As LinkHandler: throws PeerError when the frame breaks the protocol; the caller then ends the
  // connection and calls on_lost(). After on_lost(), or close(), nothing may be written any more to
  // the memory that place_for() named.
  std::optional<std::span<std::byte>> place_for(membership::ConnectionId connection,
                                                const network::FrameHeader& header);
  void on_frame(membership::ConnectionId connection, const network::FrameHeader& header,
                std::span<const std::byte> payload, Deadline now);
  // Something was heard, if only a heartbeat.
  void on_heard(membership::ConnectionId connection, Deadline now);
  void on_lost(membership::ConnectionId connection, Deadline now);
  void on_examined(std::uint64_t ticket, std::span<const float> losses, Deadline now);
  void on_not_examined(std::uint64_t ticket, const std::string& why, Deadline now);
  void on_persisted(std::uint64_t id, Deadline now);
  void on_persist_failed(std::uint64_t id, const std::string& why, Deadline now);
  // At least every 100 ms.
  void on_tick(Deadline now);

  // There will be no examiner: everybody is refused with the reason, now and later.
  void give_up(const std::string& why, Deadline now);

  // All is judged and everybody has left, or nobody has been there for idle_exit: time to go. Why,
  // for people. Until the owner has gone, a worker that joins takes it back.
  std::optional<std::string> finished() const;

  SwampCounters counters() const;
  const SwampSpec* spec() const;   // null until a worker has joined
  const BestRecord& best() const;  // that counts; version 0: none yet
  std::string text() const;        // "2 of 4 workers; waiting for 1, 3"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort::swamp
