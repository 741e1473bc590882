// The inside of BestModelServer, which several files share: what is known, and what is done.
//
//   server_joining.cpp   join, initial values      server_keeping.cpp   snapshots out and in
//   server_offers.cpp    offers, pulls, verdicts   server_leaving.cpp   farewells, the end
//
// Everything a peer sent is checked before it has any effect; what breaks the protocol throws
// PeerError and leaves this as it was, but for the connection, which the caller then ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "membership/roster.h"
#include "membership/snapshot_schedule.h"
#include "swamp/best_model_server.h"
#include "swamp/server_member.h"

namespace cohort::swamp {

struct BestModelServer::State final : membership::RosterOwner {
  using Member = SwampMember;
  using Presence = membership::MemberRow::Presence;

  struct Initial {
    std::shared_ptr<std::vector<float>> values = {};
    std::int64_t arrived = 0;
    bool whole = false;
    std::uint64_t needs = 0;  // the snapshot that makes them count
  };

  // An acceptance that is being written.
  struct Pending {
    Judgement judgement = {};
    std::uint64_t needs = 0;
    int tries = 0;
  };

  State(const SwampServerSettings& given, SwampServerPorts& given_ports)
      : settings(given),
        ports(given_ports),
        roster(given,
               {.conversation = membership::Conversation::kBestModel,
                // Random, and of another seed after a restart: no number is given twice, without
                // asking the disk.
                .incarnations = derive_seed(given.seed, "swamp incarnations") | 1U,
                .evicted_may_return = true,
                .all_must_end = false},
               *this, counters) {}

  // best_model_server.cpp
  void log(const std::string& line) const {
    if (settings.log) settings.log(line);
  }
  Member& at(const membership::MemberRow& row) {
    return members[static_cast<std::size_t>(row.worker)];
  }
  void dispatch(membership::ConnectionId connection, const network::FrameHeader& header,
                std::span<const std::byte> payload);
  void send(const Member& member, SwampFrame type, network::FrameHeader header = {},
            std::span<const std::byte> payload = {}, const ModelValues& owner = {});

  // RosterOwner.
  void send_frame(membership::ConnectionId to, const network::FrameHeader& header,
                  std::span<const std::byte> payload) override {
    ports.send(to, header, payload, nullptr);
  }
  void close_connection(membership::ConnectionId connection, const std::string& reason) override {
    ports.close(connection, reason);
  }
  void disconnected(membership::MemberRow& row) override { at(row).disconnect(); }
  void incarnation_ends(membership::MemberRow& row) override { at(row).disconnect(); }
  std::uint64_t joining(membership::MemberRow& row, std::uint64_t former) override;
  void joined(membership::MemberRow& row) override { send_joined(at(row)); }
  void evicted(membership::MemberRow& row) override;

  // server_joining.cpp
  void on_join(membership::ConnectionId connection, const network::FrameHeader& header,
               std::span<const std::byte> payload);
  bool accept_spec(membership::ConnectionId connection, Rank worker, const std::string& text);
  void send_joined(const Member& member);
  std::span<float> initial_place(const Member& member, const network::FrameHeader& header,
                                 std::size_t bytes);
  void on_initial(Member& member, const network::FrameHeader& header,
                  std::span<const std::byte> payload);
  void initial_counts();

  // server_offers.cpp
  void on_offer(Member& member, const network::FrameHeader& header,
                std::span<const std::byte> payload);
  bool follows(const Member& member, const network::FrameHeader& header, std::size_t bytes) const;
  void on_offer_values(Member& member, const network::FrameHeader& header,
                       std::span<const std::byte> payload);
  void offer_is_whole(Member& member);
  void examine_next();
  void judge(const Judgement& judgement);
  void commit(const Judgement& judgement);
  void tell(const Decision& decision);
  void send_verdict(const Member& member, const OfferVerdict& verdict);
  void on_pull(Member& member, const network::FrameHeader& header);
  bool others_may_offer(const Member& member) const;
  bool all_judged() const;
  void examine_pulls();
  void examine_pull(Member& member);
  void send_model(Member& member, const ModelValues& model, const PulledModel& told);

  // server_keeping.cpp
  std::uint64_t request_snapshot() { return snapshots.request(roster.now()); }
  void make_snapshot(std::uint64_t id);
  std::string state_text() const;
  const BestRecord& record_to_keep() const;
  void restore(const SwampSnapshot& snapshot);

  // server_leaving.cpp
  void on_leave(Member& member, const network::FrameHeader& header);
  void finish_leaves();
  void examine_end();
  void open_roster();

  const SwampServerSettings settings;
  SwampServerPorts& ports;
  SwampCounters counters;
  membership::Roster roster;
  membership::SnapshotSchedule snapshots{[this](std::uint64_t id) { make_snapshot(id); }};

  std::unique_ptr<SwampSpec> spec;
  std::string spec_text;  // as its workers send it
  std::unique_ptr<BestModel> policy;
  std::vector<Member> members;
  std::uint64_t lineage = 0;
  bool job_is_kept = false;  // lineage and specification are on disk, or need not be
  bool initialized = false;  // the initial values count
  Initial initial;
  std::optional<std::string> given_up = {};

  std::uint64_t ticket = 0;  // of the last examination
  std::optional<Candidate> examining = {};
  std::optional<Pending> pending = {};
};

}  // namespace cohort::swamp
