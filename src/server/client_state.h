// The inside of ShardClient, shared by shard_client.cpp (what the owner asks for, and sending) and
// client_frames.cpp (what the server says).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "membership/membership_client.h"
#include "server/replay_window.h"
#include "server/shard_client.h"

namespace cohort::server {

struct ShardClient::State {
  struct Push {
    ArenaView<const float> gradients = {};
    std::uint64_t sequence = 0;  // 0: none yet
    std::uint64_t base = 0;
    std::int64_t final = 0;  // elements the owner has promised not to change
    std::int64_t sent = 0;   // on this connection
    bool whole = false;      // all sent on this connection
    bool withdrawn = false;  // unless the answer is on its way
  };

  struct Pull {
    ArenaView<float> into = {};
    std::uint32_t which = 0;
    std::uint64_t id = 0;
    std::int64_t arrived = 0;
    std::int64_t early = 0;     // elements that came ahead of time
    std::uint32_t version = 0;  // low bits, of the frames that have arrived
    bool wanted = false;
    bool asked = false;  // on this connection
  };

  struct Initial {
    ArenaView<const float> parameters = {};
    std::vector<ArenaView<const float>> slots = {};
    ModelProgress behind = {};
    bool given = false;
  };

  State(const ClientOptions& given, ClientPorts& given_ports);

  void send(ServerFrame type, network::FrameHeader header = {},
            std::span<const std::byte> payload = {}, network::Kept kept = network::Kept::kCopy);
  void send_join();
  void send_vector(std::uint32_t which, const ArenaView<const float>& values);
  void send_initial();
  void send_part(network::FrameHeader header, std::span<const float> part, network::Kept kept);
  void send_replay(const ReplayWindow::Entry& entry);
  // All below: sends what is next and possible.
  void pump();
  bool pump_replay();  // whether nothing is left to repeat
  bool pump_push();    // whether the whole push has gone out
  void ask_for_snapshot();

  void on_joined(std::span<const std::byte> payload);
  void on_answer(ServerFrame type, const network::FrameHeader& header,
                 std::span<const std::byte> payload);
  void on_fenced();
  void on_progress(const network::FrameHeader& header, std::span<const std::byte> payload);
  void on_values(const network::FrameHeader& header, std::span<const std::byte> payload);
  void resolve_push(PushOutcome outcome, std::vector<Rank> workers);
  void trim(std::uint64_t durable);
  void on_early_values(const network::FrameHeader& header, std::span<const std::byte> payload);
  // Where the next values, or the next that come ahead of time, have to begin; nothing: none can.
  std::optional<std::int64_t> next_place(const network::FrameHeader& header) const;
  bool follows(const network::FrameHeader& header, std::size_t bytes) const;
  void put_values(std::int64_t place, std::span<const std::byte> payload);
  void ask_for_values(bool ahead);
  WireFormat format_of_pull() const;
  bool unanswered() const { return push.sequence != 0 && !outcome; }
  bool push_open() const { return unanswered() && !push.withdrawn; }
  void resolve_fenced_push();
  [[noreturn]] void broken(const std::string& what) const { member.broken(what); }

  const ClientOptions options;
  ClientPorts& ports;
  membership::MembershipClient member;

  bool going_back = false;   // asks the server to, and is not joined yet
  bool push_fenced = false;  // with a push that was not answered
  JoinedBody body;

  Initial initial;
  bool initial_sent = false;  // on this connection

  std::uint64_t sequence = 0;  // of the last push
  std::uint64_t answered = 0;  // pushes of this incarnation
  std::uint64_t heard_of = 0;  // of these, what the server is known to have, on this connection
  Push push;
  std::optional<PushOutcome> outcome;

  Pull pull;
  std::uint64_t known_version = 0;
  std::uint64_t version = 0;
  bool finished = false;
  ModelProgress progress;

  ReplayWindow window;
  std::uint64_t replayed = 0;           // up to here the server has, or has been sent, everything
  std::optional<std::uint64_t> repeat;  // kSync: the repeated push that is not answered yet
  std::uint64_t durable = 0;
  bool snapshot_asked = false;

  Bytes scratch;
};

}  // namespace cohort::server
