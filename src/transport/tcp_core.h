// The inside of a node: its thread, its listener, and its links.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "network/connector.h"
#include "network/handshake.h"
#include "network/listener.h"
#include "transport/mailbox.h"
#include "transport/tcp.h"
#include "transport/tcp_wire.h"

namespace cohort::transport {

// One lane, as its transport and the node's thread share it.
struct TcpLaneState {
  TcpLaneState(const TcpLane& lane, Rank own_index);

  const TcpLane lane;
  const Rank own;
  Mailbox mailbox;

  // Of the node's thread alone:
  std::vector<TcpWire*> wires;  // by member; null: none
  bool closed = false;
  Deadline deadline = {};                   // of the start
  std::vector<network::Address> addresses;  // by member

  // Who is still missing at the start.
  std::mutex mutex;  // guards the rest
  std::condition_variable changed;
  bool starting = true;                    // connect() has not returned
  std::vector<bool> missing;               // by member
  std::vector<std::string> obstacles;      // by member: why it has not come yet, as far as known
  std::vector<std::string> introductions;  // by member that connected to this one
  std::string refusal;
  Rank reached = -1;  // whom this one called last, and came to

  std::optional<Rank> member_of(Rank process) const;
  bool all_there() const;
  std::string names_of_missing() const;
};

class TcpCore final : public TcpWire::Owner {
 public:
  explicit TcpCore(const TcpNodeOptions& options);
  TcpCore(const TcpCore&) = delete;
  TcpCore& operator=(const TcpCore&) = delete;
  ~TcpCore() override;  // not on the node's own thread

  const TcpNodeOptions& options() const { return options_; }
  const network::Address& address() const { return address_; }

  // From any thread. `member` of call(): or kAnyRank.
  void open(const std::shared_ptr<TcpLaneState>& lane, Deadline deadline);
  void call(const std::shared_ptr<TcpLaneState>& lane, Rank member, const network::Address& address,
            Deadline deadline);
  // Sends the member what was sent to it before, and hangs up.
  void give_up(const std::shared_ptr<TcpLaneState>& lane, Rank member);
  // Returns when the links have been given what was sent before, and the farewell.
  void close(const std::shared_ptr<TcpLaneState>& lane);
  bool listen_also(const network::Address& address);
  void admit_nobody(const std::string& why);
  void stop_listening();
  void send(const std::shared_ptr<TcpLaneState>& lane, Rank to,
            std::shared_ptr<TcpOutgoing> message);
  // The sender of `message` will not wait any longer.
  void abandon(const std::shared_ptr<TcpOutgoing>& message);

  void message_arrived(TcpWire& wire, Tag tag, Bytes payload) override;
  void wire_ended(TcpWire& wire, const std::string& reason) override;

 private:
  // A link and what is known of it.
  struct Line {
    std::unique_ptr<TcpWire> wire;
    std::shared_ptr<TcpLaneState> lane;
    Rank member;  // of the lane
  };

  network::Objection admit(const network::Greeting& hello) const;
  network::Objection admit_to(TcpLaneState& lane, const network::Greeting& hello) const;
  std::unique_ptr<network::Listener> listen_for_others(const network::Address& address);
  void call(const std::shared_ptr<TcpLaneState>& lane, Rank member);
  void connect_to(const std::shared_ptr<TcpLaneState>& lane, Rank member,
                  const network::Address& address);
  void add_line(std::unique_ptr<network::Link> link, const std::shared_ptr<TcpLaneState>& lane,
                Rank member, bool accepted);
  Line& line_of(const TcpWire& wire);
  void note(const std::string& text) const;

  const TcpNodeOptions options_;
  network::Address address_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::map<int, std::shared_ptr<TcpLaneState>> lanes_;  // open ones
  std::list<Line> lines_;
  std::map<std::pair<int, Rank>, std::unique_ptr<network::Connector>> connectors_;
  std::vector<std::unique_ptr<network::Listener>> listeners_;
  std::string closed_to_others_;  // why
  std::mutex mutex_;              // guards the next two
  std::condition_variable changed_;
  int wires_ = 0;  // that have not ended
  std::thread thread_;
};

}  // namespace cohort::transport
