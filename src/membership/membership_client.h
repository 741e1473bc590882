// A worker's membership at one server: the counterpart of roster.h, without sockets, threads and
// clock. Each conversation's client has one and asks it first about every frame.
//
// It survives the connection: after on_connected() the owner asks again. A worker that is fenced
// has no incarnation any more; its owner forgets what belonged to it, and asks for a new one.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "membership/messages.h"

namespace cohort::membership {

class MembershipClient {
 public:
  using Send =
      std::function<void(const network::FrameHeader& header, std::span<const std::byte> payload)>;
  enum class Event {
    kNothing,  // nothing that the owner has to know of
    kJoined,   // joined_rest() of the payload is the conversation's
    kFenced,
    kOther,  // a frame of the conversation, of this incarnation
  };

  // `server`: what it is called in messages. `job`: the specification as it travels.
  MembershipClient(Conversation conversation, std::string server, std::string job, Send send);

  void on_connected();
  void on_lost();
  // Asks to join, unless there is no use in that. `header`: what the conversation adds to it.
  void ask(JoinKind kind = JoinKind::kAnew, network::FrameHeader header = {});
  // Throws PeerError when the server breaks the protocol.
  Event on_frame(const network::FrameHeader& header, std::span<const std::byte> payload);
  void start_over();  // as if it had never been a member, on this connection

  bool connected() const { return connected_; }
  bool joined() const { return connected_ && joined_; }
  std::uint64_t incarnation() const { return incarnation_; }  // 0: none yet, or fenced
  std::uint64_t lineage() const { return lineage_; }          // of the server's state; 0: not known
  // The server will not have this worker, or has lost its state: why. There is no use in going on.
  const std::optional<std::string>& refused() const { return refused_; }
  std::uint64_t rejoined() const { return rejoined_; }  // how often it was fenced

  void leave(LeaveKind how) { leaving_ = how; }
  bool leaving() const { return leaving_.has_value(); }
  void send_leave();  // once on each connection, if it is leaving
  bool left() const { return left_; }

  [[noreturn]] void broken(const std::string& what) const;  // throws PeerError

 private:
  void send(MemberFrame type, network::FrameHeader header, std::span<const std::byte> payload = {});
  void on_joined(const network::FrameHeader& header, std::span<const std::byte> payload);

  const Conversation conversation_;
  const std::string server_;
  const std::string job_;
  const Send send_;
  bool connected_ = false;
  bool joined_ = false;
  std::uint64_t incarnation_ = 0;
  std::uint64_t before_ = 0;  // the incarnation that was fenced, while a new one is asked for
  std::uint64_t lineage_ = 0;
  std::optional<std::string> refused_;
  std::uint64_t rejoined_ = 0;
  std::optional<LeaveKind> leaving_;
  bool leave_sent_ = false;  // on this connection
  bool left_ = false;
};

}  // namespace cohort::membership
