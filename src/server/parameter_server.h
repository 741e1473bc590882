// A parameter server without sockets, threads, clock and disk: frames and time go in, frames and
// snapshots come out. The same object runs behind Asio, under the simulator and under the fuzzer.
//
// What it promises (docs/protocol.md has the argument for each):
//   - An acknowledged push is in the model exactly once: over reconnects, repeated and delayed
//     frames, crashes of the worker, and crashes of the server as long as the worker that holds the
//     push for a replay lives. The table of what has been applied is part of the snapshot.
//   - An incarnation that was evicted or replaced changes nothing any more.
//   - kSync: a round is the mean over the workers that are members, summed in the order of ranks,
//     of a whole gradient each, applied at once or not at all. kBounded: a pull is answered only
//     while the puller is at most `staleness` ahead of the slowest member. A worker that is silent
//     for `evict_after` is no member: it holds up nobody.
//   - Numbers that are not finite never reach the model.
//   - Values that answer one pull are those of one version.
//
// kSync: after a restart from a snapshot nothing is updated until every member of that time has
// joined again, or has been given up: only they know which rounds had been made since. A round that
// none of them was told of may be made again of others, but not under the number of a version that
// one of them has pulled. In the other modes every worker repeats its own pushes, whoever else is
// there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/types.h"
#include "membership/roster.h"
#include "network/frame.h"
#include "network/link.h"
#include "server/job_spec.h"
#include "server/messages.h"

namespace cohort::server {

// All that survives a crash, at one moment. Made by the server, kept by its ports.
struct ServerSnapshot {
  std::uint64_t id = 0;    // counts up
  bool newest = true;      // false when it is restored because newer ones are damaged
  std::string state = {};  // a JSON document: spec, tables, counters
  std::vector<float> parameters = {};
  std::vector<std::vector<float>> slots = {};  // the optimizer's
};

// What the server does to the world. Called from within its methods; must not call back, but for
// what is const.
class ServerPorts {
 public:
  virtual ~ServerPorts() = default;

  // kLent: the bytes are those of the model, or of its second copy, and stay until model_changes()
  // names their memory.
  virtual void send(membership::ConnectionId to, const network::FrameHeader& header,
                    std::span<const std::byte> payload, network::Kept kept) = 0;
  // What a vector is to be cut into.
  virtual std::size_t piece_bytes(membership::ConnectionId) const { return kPieceBytes; }
  // Whether more values may be sent now. After a no on_room() must be called, later, not from here.
  virtual bool has_room(membership::ConnectionId) { return true; }
  // Lent bytes of this memory that are not sent yet must be copied now.
  virtual void model_changes(std::span<const std::byte> memory) = 0;
  // An update is about to be made, or numbers of versions to be passed over.
  virtual void version_changes() {}
  // Closes after what was sent has gone out. The server forgets the connection at once.
  virtual void close(membership::ConnectionId connection, const std::string& reason) = 0;
  // Writes it; then on_persisted(id) or on_persist_failed(id) must be called, later, not from here.
  // Of several the latest is enough. Never called when keeps_state is false.
  virtual void persist(ServerSnapshot snapshot) = 0;
};

// evict_unconnected goes for evictions too where others wait for the slowest (kBounded). What was
// pushed since the snapshot is lost with workers that do not come back within return_within.
struct ServerOptions : membership::MembershipOptions {
  std::string told = {};  // settings that every worker's job must have; see differences_from_told()
  int server = 0;
  bool keeps_state = false;  // snapshots are wanted
  // kSync: so long no round is made after a worker was interrupted: the others have most likely got
  // the same signal, and a round of those who get it last would be of fewer gradients.
  std::chrono::nanoseconds interruption_grace = std::chrono::seconds(2);
  std::chrono::nanoseconds snapshot_every = std::chrono::seconds(5);
  // Elements of an update that are computed, and sent, at a time while its gradients come in.
  std::size_t speculation_stretch = kPieceBytes / sizeof(float);
  Seed seed = 0;  // for the lineage: another at every start
};

// Counted since the beginning of the job, crashes included.
struct ServerCounters : membership::MembershipCounters {
  std::uint64_t updates = 0;      // made to the model
  std::uint64_t speculative = 0;  // of these, computed while their gradients came in
  std::uint64_t pushes = 0;       // that are in the model
  std::uint64_t duplicates = 0;   // that were in it already
  std::uint64_t dropped = 0;      // too late for their round
  std::uint64_t rejected = 0;     // not finite
  // Acknowledged, not durable when the server died, and not repeated, as far as somebody came who
  // knew: kSync: the other workers of their rounds; else others who had pulled a version that they
  // had made, or their own worker, when it came too late (pushes that had been refused included).
  std::uint64_t lost = 0;
  // Workers that did not come back after a restart, of which nobody knows whether they had pushed
  // anything since the snapshot.
  std::uint64_t unaccounted = 0;
  std::map<std::uint64_t, std::uint64_t> staleness = {};  // of pushes: how many had which
};

class ParameterServer {
 public:
  // `ports` outlives the server. `snapshot`: what a server of this job kept, to go on from. Throws
  // FileError when that is not sound.
  ParameterServer(const ServerOptions& options, ServerPorts& ports,
                  const ServerSnapshot* snapshot = nullptr);
  ~ParameterServer();
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

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
  // More values may be sent than when has_room() was asked.
  void on_room(membership::ConnectionId connection, Deadline now);
  void on_persisted(std::uint64_t id, Deadline now);
  void on_persist_failed(std::uint64_t id, const std::string& why, Deadline now);
  // At least every 100 ms.
  void on_tick(Deadline now);

  // Everybody is done or failed, or nobody has been there for idle_exit: time to go. Why, for
  // people. Until the owner has gone, a worker that joins takes it back.
  std::optional<std::string> finished() const;

  // Every worker has said that it is done, no update is missing and no gradient lost.
  bool ended_well() const;

  const ServerCounters& counters() const;
  std::uint64_t version() const;
  const JobSpec* spec() const;            // null until a worker has joined
  std::vector<float> parameters() const;  // a copy
  // Members and whom the job still waits for, for messages: "2 of 4 workers; waiting for 1, 3".
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort::server
