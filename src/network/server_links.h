// The links of a server: what lies between its listener and the state machine behind it.
//
// Numbers the links, hands the machine what they call, and keeps each until it is lost, or until
// the machine has closed it and its last words are out. Everything on the links' thread.
//
// A Machine has on_connected(), place_for(), on_frame(), on_heard(), on_lost() and, where it wants
// to know of it, on_room(), each with the link's number, which is never used twice. Extra is what
// the server keeps with each link; it outlives the link.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/traffic.h"
#include "network/handshake.h"
#include "network/link.h"
#include "network/listener.h"

namespace cohort::network {

// For ListenerEvents::admit. `workers` 0: it is not known yet how many there are.
inline Objection admit_worker(const Greeting& hello, int workers) {
  const Identity& peer = hello.self;
  if (peer.role != Role::kWorker) return {"only workers are served here"};
  if (workers == 0 || peer.rank < workers) return {};
  return {"there is no worker " + std::to_string(peer.rank) + ": this server expects " +
          std::to_string(workers)};
}

template <class Machine, class Extra>
class ServerLinks {
 public:
  using Id = std::uint64_t;

  struct Held final : LinkHandler {
    Held(ServerLinks& links, Id number, std::unique_ptr<Link> established)
        : owner(links), id(number), link(std::move(established)) {}

    std::optional<std::span<std::byte>> place_for(Link&, const FrameHeader& header) override {
      return closed ? std::nullopt : owner.machine_->place_for(id, header);
    }
    void frame_arrived(Link&, const FrameHeader& header,
                       std::span<const std::byte> payload) override {
      if (!closed) owner.machine_->on_frame(id, header, payload, Clock::now());
    }
    void all_sent(Link&) override {
      if constexpr (requires { owner.machine_->on_room(id, Clock::now()); }) {
        if (!closed) owner.machine_->on_room(id, Clock::now());
      }
    }
    void link_lost(Link&, const std::string& reason) override {
      lost = true;
      if (closed) return;
      if (reason != kSaidGoodbye) owner.log_("lost " + link->peer_text() + ": " + reason);
      owner.machine_->on_lost(id, Clock::now());
    }

    ServerLinks& owner;
    Id id;
    Extra extra = {};
    std::unique_ptr<Link> link;
    bool closed = false;  // by the machine; only what is unsent still goes out
    bool lost = false;
    Clock::time_point reported = {};  // when something was heard, as the machine knows
  };

  explicit ServerLinks(std::function<void(const std::string&)> log) : log_(std::move(log)) {}

  void serve(Machine& machine) { machine_ = &machine; }  // before the first accept()

  void accept(std::unique_ptr<Link> link) {
    const Id id = ++last_id_;
    auto owned = std::make_unique<Held>(*this, id, std::move(link));
    Held& held = *owned;
    held_.emplace(id, std::move(owned));
    machine_->on_connected(id, held.link->peer().rank, Clock::now());
    held.link->set_handler(held);
  }

  // Tells the machine who was heard.
  void report_heard() {
    for (auto& [id, held] : held_) {
      const Clock::time_point heard = held->link->last_heard();
      if (held->closed || held->lost || heard <= held->reported) continue;
      held->reported = heard;
      machine_->on_heard(id, heard);
    }
  }

  // Destroys links, and so must not be called by one.
  void remove_gone() {
    std::erase_if(held_, [this](const auto& each) {
      const Held& held = *each.second;
      if (!held.lost && (!held.closed || held.link->unsent() > 0)) return false;
      add(gone_, *held.link);
      return true;
    });
  }

  void close(Id id, const std::string& reason) {
    Held* const held = find(id);
    if (held == nullptr) return;
    log_("closing the connection of " + held->link->peer_text() + ": " + reason);
    held->closed = true;
    held->link->close_after_sending();
  }

  // Null when it is lost or gone.
  Held* find(Id id) const {
    const auto found = held_.find(id);
    return found == held_.end() || found->second->lost ? nullptr : found->second.get();
  }
  const std::map<Id, std::unique_ptr<Held>>& all() const { return held_; }

  // Of those that are gone as well.
  Traffic traffic() const {
    Traffic sum = gone_;
    for (const auto& [id, held] : held_) add(sum, *held->link);
    return sum;
  }

 private:
  static void add(Traffic& sum, const Link& link) {
    sum.sent += link.bytes_sent();
    sum.received += link.bytes_received();
  }

  std::function<void(const std::string&)> log_;
  Machine* machine_ = nullptr;
  std::map<Id, std::unique_ptr<Held>> held_;
  Id last_id_ = 0;
  Traffic gone_;
};

}  // namespace cohort::network
