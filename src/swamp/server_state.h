// The inside of BestModelServer, which several files share: what is known, and what is done.
//
//   server_joining.cpp   join, initial values      server_keeping.cpp   snapshots out and in
//   server_offers.cpp    offers, pulls, verdicts   server_leaving.cpp   farewells, eviction, the
//   end
//
// Everything a peer sent is checked before it has any effect; what breaks the protocol throws
// PeerError and leaves this as it was, but for the connection, which the caller then ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "swamp/best_model_server.h"
#include "swamp/server_member.h"

namespace cohort {

struct BestModelServer::State {
  using Member = SwampMember;
  using Presence = SwampMember::Presence;

  struct Connection {
    Rank worker = 0;
    bool joined = false;
    // Asks for a new incarnation while another connection of that worker seems to be alive.
    std::optional<Deadline> held_since = {};
    Deadline last_heard = {};
  };

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
      : settings(given), ports(given_ports) {}

  // best_model_server.cpp
  void note_time(Deadline time);
  void log(const std::string& line) const {
    if (settings.log) settings.log(line);
  }
  Member* member_of(SwampConnection connection, const FrameHeader& header);
  Member* find(Rank worker);
  void dispatch(SwampConnection connection, const FrameHeader& header,
                std::span<const std::byte> payload);
  void send(const Member& member, SwampFrame type, FrameHeader header = {},
            std::span<const std::byte> payload = {}, const ModelValues& owner = {});
  void forget(SwampConnection connection, const std::string& reason);

  // server_joining.cpp
  void on_join(SwampConnection connection, const FrameHeader& header,
               std::span<const std::byte> payload);
  bool accept_spec(SwampConnection connection, Rank worker, const std::string& text);
  void refuse(SwampConnection connection, const std::string& why);
  void fence(SwampConnection connection, std::uint64_t incarnation);
  void return_with(SwampConnection connection, Member& member, const FrameHeader& header);
  void hold_or_join(SwampConnection connection, Member& member);
  void examine_held();
  void join_anew(SwampConnection connection, Member& member);
  void activate(Member& member);
  void send_joined(const Member& member);
  void stay();  // though it was about to end
  std::span<float> initial_place(const Member& member, const FrameHeader& header,
                                 std::size_t bytes);
  void on_initial(Member& member, const FrameHeader& header, std::span<const std::byte> payload);
  void initial_counts();

  // server_offers.cpp
  void on_offer(Member& member, const FrameHeader& header, std::span<const std::byte> payload);
  bool follows(const Member& member, const FrameHeader& header, std::size_t bytes) const;
  void on_offer_values(Member& member, const FrameHeader& header,
                       std::span<const std::byte> payload);
  void offer_is_whole(Member& member);
  void examine_next();
  void judge(const Judgement& judgement);
  void commit(const Judgement& judgement);
  void tell(const Decision& decision);
  void send_verdict(const Member& member, const OfferVerdict& verdict);
  void on_pull(Member& member, const FrameHeader& header);
  bool others_may_offer(const Member& member) const;
  bool all_judged() const;
  void examine_pulls();
  void examine_pull(Member& member);
  void send_model(Member& member, const ModelValues& model, const PulledModel& told);

  // server_keeping.cpp
  std::uint64_t request_snapshot();  // the id of the one that will hold what is now
  void make_snapshot();
  std::string state_text() const;
  const BestRecord& record_to_keep() const;
  void restore(const SwampSnapshot& snapshot);

  // server_leaving.cpp
  void on_leave(Member& member);
  void finish_leaves();
  void evict(Member& member, const std::string& why);
  void evict_silent();
  bool somebody_there() const;
  int count(Presence presence) const;
  void examine_end();
  std::string text() const;

  const SwampServerSettings settings;
  SwampServerPorts& ports;
  Deadline now = {};
  std::optional<Deadline> started = {};

  std::unique_ptr<SwampSpec> spec;
  std::string spec_text;  // as its workers send it
  std::unique_ptr<BestModel> policy;
  std::vector<Member> members;
  std::unordered_map<SwampConnection, Connection> connections;
  SwampCounters counters;
  std::uint64_t lineage = 0;
  std::uint64_t incarnations = 0;  // given out by this server
  bool job_is_kept = false;        // lineage and specification are on disk, or need not be
  bool initialized = false;        // the initial values count
  Initial initial;
  std::optional<std::string> given_up = {};

  std::uint64_t ticket = 0;  // of the last examination
  std::optional<Candidate> examining = {};
  std::optional<Pending> pending = {};

  std::uint64_t snapshot_id = 0;  // of the last one made
  std::optional<std::uint64_t> persisting = {};
  bool snapshot_wanted = false;
  bool changed = false;  // since the last snapshot was made
  std::optional<Deadline> retry_at = {};

  std::optional<Deadline> gone_since = {};  // some have left and nobody is there
  std::optional<Deadline> idle_since = {};  // without any connection
  std::optional<std::string> ending = {};   // the reason, while the last snapshot is written
  std::optional<std::string> finished = {};
};

}  // namespace cohort
