// A server's thread: its listener and links, the state machine behind them, time, and when it ends.
// What parameter servers and the best-model server run in.
//
// Machine: as ServerLinks wants it, and on_tick(), finished(), text(), on_persisted(),
// on_persist_failed(). Extra: as in ServerLinks.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/clock.h"
#include "network/listener.h"
#include "network/server_links.h"

namespace cohort::membership {

template <class Machine, class Extra>
class ServerLoop {
 public:
  explicit ServerLoop(std::function<void(const std::string&)> log) : log_(std::move(log)) {}

  boost::asio::io_context& io() { return io_; }
  network::ServerLinks<Machine, Extra>& links() { return links_; }
  const network::ServerLinks<Machine, Extra>& links() const { return links_; }
  const network::Listener& listener() const { return *listener_; }
  const std::string& reason() const { return reason_; }  // why it ended

  // Ranks from `workers` on are refused; 0: the first worker says how many there are.
  void listen(Machine& machine, const network::ListenerOptions& options, int workers) {
    machine_ = &machine;
    links_.serve(machine);
    listener_ = network::listen(
        io_, options,
        {[workers](const network::Greeting& hello) {
           return network::admit_worker(hello, workers);
         },
         [this](std::unique_ptr<network::Link> link) { links_.accept(std::move(link)); }, log_});
  }

  // Ticks from now on, until io() has been stopped: when the job is over, or when `stop` is true
  // and the workers have left or `time_to_leave` has passed. `each_tick` may be empty.
  void start(const std::atomic<bool>& stop, std::chrono::nanoseconds time_to_leave,
             std::function<void()> each_tick) {
    stop_ = &stop;
    time_to_leave_ = time_to_leave;
    each_tick_ = std::move(each_tick);
    tick();
  }

  // Tells the machine what became of a snapshot; from any thread, while io() lives.
  std::function<void(std::uint64_t, const std::string&)> persisted() {
    return [this](std::uint64_t id, const std::string& failure) {
      boost::asio::post(io_, [this, id, failure] {
        if (failure.empty()) {
          machine_->on_persisted(id, Clock::now());
        } else {
          machine_->on_persist_failed(id, failure, Clock::now());
        }
      });
    };
  }

 private:
  static constexpr std::chrono::milliseconds kTick{50};
  // What a worker may still have to be told when the job is over.
  static constexpr std::chrono::milliseconds kFarewell{500};

  void tick() {
    const Clock::time_point now = Clock::now();
    links_.report_heard();
    machine_->on_tick(now);
    if (each_tick_) each_tick_();
    links_.remove_gone();
    if (is_over(now)) return io_.stop();
    timer_.expires_after(kTick);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) tick();
    });
  }

  bool is_over(Clock::time_point now) {
    if (!ending_ && *stop_) {
      if (!stop_at_) stop_at_ = now + time_to_leave_;
      const bool alone = std::all_of(links_.all().begin(), links_.all().end(),
                                     [](const auto& each) { return each.second->closed; });
      if (alone || now >= *stop_at_) {
        reason_ = "stopped by a signal, " + machine_->text();
        return true;
      }
    }
    if (const auto why = machine_->finished(); why && !ending_) {
      reason_ = *why;
      ending_ = now + kFarewell;
      listener_->stop();
    }
    return ending_ && (now >= *ending_ || links_.all().empty());
  }

  std::function<void(const std::string&)> log_;
  boost::asio::io_context io_{1};
  boost::asio::steady_timer timer_{io_};
  Machine* machine_ = nullptr;
  network::ServerLinks<Machine, Extra> links_{log_};
  std::function<void()> each_tick_;
  const std::atomic<bool>* stop_ = nullptr;
  std::chrono::nanoseconds time_to_leave_{};
  std::string reason_;
  std::optional<Clock::time_point> ending_;
  std::optional<Clock::time_point> stop_at_;  // at the latest
  std::unique_ptr<network::Listener> listener_;
};

}  // namespace cohort::membership
