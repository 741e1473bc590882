// The inside of ParameterServer, which several files share: what is known, and what is done.
//
//   joining.cpp   join, initial values        pulling.cpp   values out, clocks
//   pushing.cpp   gradients in, rounds        keeping.cpp   snapshots out and in
//   leaving.cpp   farewells, eviction, the end
//   speculation.cpp  updates and values ahead of time
//   losses.cpp  what was acknowledged and is in no model
//   materializing.cpp  updates take effect, and those who read go first
//   restarting.cpp  all workers begin again from a checkpoint
//
// Everything a peer sent is checked before it has any effect; what breaks the protocol throws
// PeerError and leaves this as it was, but for the connection, which the caller then ends.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "membership/roster.h"
#include "membership/snapshot_schedule.h"
#include "server/members.h"
#include "server/model_state.h"
#include "server/parameter_server.h"
#include "server/rounds.h"

namespace cohort::server {

struct ParameterServer::State final : membership::RosterOwner {
  // The join of a worker that comes with a checkpoint, while it waits for what becomes of the job.
  struct Restart {
    Rank worker = 0;
    network::FrameHeader header = {};
    membership::JoinRequest request = {};
    Deadline since = {};
    bool other_job = false;  // than the server has: it was resumed with other settings
  };

  // What a snapshot that is being written holds of a member.
  struct Persisting {
    std::uint64_t incarnation = 0;
    std::uint64_t applied = 0;
  };

  // An update that is computed ahead of time, in the model's second copy.
  struct Speculation {
    struct Part {
      Rank worker = 0;
      std::uint64_t incarnation = 0;
      std::uint64_t sequence = 0;  // of its push
      std::uint64_t cleared = 0;   // of the memory that holds it
    };
    std::vector<Part> parts;    // in the order of ranks
    std::uint64_t version = 0;  // that it would follow
  };

  // After a restart: what may be lost with workers that do not come back.
  struct Loss {
    // The snapshot's version, what had been lost before, and what is repeated since.
    std::uint64_t accounted = 0;
    std::uint64_t seen = 0;     // the newest version that one who came back had pulled
    std::vector<Rank> workers;  // that do not come back
  };

  // How far the initial values have come in.
  struct Initialization {
    std::uint32_t which = 0;
    std::int64_t place = 0;
    bool whole = false;
    bool finite = true;
    std::uint64_t needs = 0;  // the snapshot that makes them count
  };

  State(const ServerOptions& given, ServerPorts& given_ports)
      : options(given),
        ports(given_ports),
        roster(given, {.conversation = membership::Conversation::kParameters}, *this, counters) {}

  // Beginning, in parameter_server.cpp.
  void log(const std::string& line) const {
    if (options.log) options.log(line);
  }
  void dispatch(membership::ConnectionId connection, const network::FrameHeader& header,
                std::span<const std::byte> payload);
  void send(const Member& member, ServerFrame type, network::FrameHeader header = {},
            std::span<const std::byte> payload = {}, network::Kept kept = network::Kept::kCopy);

  // RosterOwner, likewise.
  void send_frame(membership::ConnectionId to, const network::FrameHeader& header,
                  std::span<const std::byte> payload) override;
  void close_connection(membership::ConnectionId connection, const std::string& reason) override;
  void disconnected(membership::MemberRow& row) override { members->at(row.worker).disconnect(); }
  void incarnation_ends(membership::MemberRow& row) override;  // in losses.cpp
  std::uint64_t joining(membership::MemberRow& row, std::uint64_t former) override;
  void joined(membership::MemberRow& row) override;
  void evicted(membership::MemberRow& row) override;
  bool finished_training() const;

  // joining.cpp
  void on_join(membership::ConnectionId connection, const network::FrameHeader& header,
               std::span<const std::byte> payload);
  void join(membership::ConnectionId connection, Rank worker, const network::FrameHeader& header,
            const membership::JoinRequest& request);
  std::string objection(Rank worker, const std::string& text, JobSpec& given) const;
  bool accept_spec(membership::ConnectionId connection, Rank worker, const std::string& text);
  std::string lost_state_text() const;
  void count_lost(Member& member, const network::FrameHeader& join);
  void comes_back(const Member& member, const network::FrameHeader& join);
  void name_unaccounted(const std::vector<Rank>& workers);
  void examine_losses();
  void return_with(membership::ConnectionId connection, Member& member,
                   const network::FrameHeader& header);
  void send_joined(const Member& member);
  std::span<float> initial_place(const Member& member, const network::FrameHeader& header,
                                 std::size_t bytes);
  void on_initialize(Member& member, const network::FrameHeader& header,
                     std::span<const std::byte> payload);
  void on_initialized(Member& member, const network::FrameHeader& header,
                      std::span<const std::byte> payload);
  void values_count();

  // restarting.cpp
  enum class UnderWay { kNo, kPerhaps, kYes };
  void hold_restart(membership::ConnectionId connection, Rank worker,
                    const network::FrameHeader& header, membership::JoinRequest request);
  UnderWay under_way() const;
  bool gone_on_without_first() const;
  void examine_restart();
  void go_back(membership::ConnectionId connection, Rank worker, const network::FrameHeader& header,
               const membership::JoinRequest& request);
  void forget_job();

  // pushing.cpp
  bool expects(const Member& member, const network::FrameHeader& header, std::size_t bytes) const;
  void on_push(Member& member, const network::FrameHeader& header,
               std::span<const std::byte> payload);
  void on_committed(Member& member, const network::FrameHeader& header,
                    std::span<const std::byte> payload);
  void push_is_whole(Member& member);
  void offer_to_round(Member& member);
  void apply_at_once(Member& member);
  void answer(Member& member, PushAnswer answer);
  void send_answer(const Member& member);
  void examine_rounds();
  void make_round(const RoundDecision& decision);
  bool apply_sum(const std::vector<Rank>& ranks);
  void drop_late_pushes();
  void skip_held_versions();
  void skip_to(std::uint64_t version);
  void note_lost(std::uint64_t pushes, const std::string& why);

  // pulling.cpp
  void on_pull(Member& member, const network::FrameHeader& header);
  bool may_read(const Member& member) const;
  bool others_may_push(const Member& member) const;
  void examine_pulls();
  // kBounded: whether a worker with this clock may read.
  bool in_bounds(const Member& member, std::uint64_t clock) const;
  void send_values(Member& member);
  void send_progress(const Member& member);
  void go_on_sending(Member& member);  // as far as there is room
  void send_piece(Member& member);     // of what it reads
  void send_the_rest();                // to all who read

  // materializing.cpp
  void queue_update(std::span<const float> gradients, double scale);
  void materialize(std::uint64_t version, std::size_t count);
  void materialize();
  void free_memory(const StagedPush& push);
  void memory_changes(std::span<const float> memory);

  // speculation.cpp
  std::vector<Rank> speculation_ranks(const Member& member) const;
  bool others_push(Rank worker) const;
  bool speculation_holds() const;
  void speculate(const Member& member);  // of whom something has come
  bool extend_speculation();
  void send_early(Member& member);
  bool adopt_speculation(const std::vector<Rank>& ranks);

  // keeping.cpp
  std::uint64_t request_snapshot() { return snapshots.request(roster.now()); }
  void make_snapshot(std::uint64_t id);
  std::string state_text() const;
  void restore(const ServerSnapshot& snapshot);
  void move_watermarks(const std::vector<Persisting>& written);

  // leaving.cpp
  void on_leave(Member& member, const network::FrameHeader& header);
  void finish_leave(Member& member);
  void evict_who_holds_up();
  std::string lost_text() const;
  void examine_end();
  std::string text() const;

  const ServerOptions options;
  ServerPorts& ports;
  ServerCounters counters;
  membership::Roster roster;
  membership::SnapshotSchedule snapshots{[this](std::uint64_t id) { make_snapshot(id); }};

  std::unique_ptr<JobSpec> spec;
  std::string spec_text;  // as its workers send it
  std::optional<ModelState> model;
  std::optional<Members> members;
  std::map<membership::ConnectionId, Restart> restarts;
  std::uint64_t lineage = 0;
  bool fell_back = false;                   // to a snapshot that is not the newest
  bool gone_back = false;                   // to worker 0's checkpoint
  std::vector<std::uint64_t> incarnations;  // given out before the job began again, by worker
  std::optional<std::uint64_t> first_gone_at = {};  // the version when worker 0 went, if it is away
  std::optional<Loss> loss = {};                    // until it is known who comes back
  std::uint64_t inferred_lost = 0;                  // pushes that their workers have not told of
  std::uint64_t skipped = 0;                        // versions that no update has made
  bool initialized = false;
  Initialization initialization;
  bool restored = false;    // from a snapshot
  bool recovering = false;  // kSync: rounds made before the restart are still to be repeated
  Bytes scratch;            // for formats that are not the arena's
  std::optional<Speculation> speculation;
  bool no_speculation = false;   // for want of memory
  AlignedVector<float> stretch;  // a sum of some of its gradients

  std::vector<Persisting> persisting;        // by rank
  std::optional<Deadline> rounds_from = {};  // no round before
};

}  // namespace cohort::server
