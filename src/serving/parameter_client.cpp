#include "serving/parameter_client.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <exception>
#include <future>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "network/event_loop.h"
#include "serving/shard_channel.h"

namespace cohort::serving {
namespace {

// Gradients are handed to the client's thread in pieces no smaller: waking it costs some time.
constexpr std::int64_t kWorthSending = 64 << 10;  // elements
constexpr std::chrono::seconds kSayWhoIsMissing{3};
// Others may have days to go; servers give up those who are dead.
constexpr std::chrono::hours kAnyTime{24 * 365};
// How long a user who has asked to stop waits for an answer that a server at work gives at once,
// and for what may never come.
constexpr std::chrono::milliseconds kAnswerTime{2000};
// And for other workers: what nobody waited for is done again when the job goes on.
constexpr std::chrono::milliseconds kOthersTime{200};
constexpr std::chrono::milliseconds kNoTime{0};
// For an answer that comes at once, or not at all.
constexpr std::chrono::milliseconds kAMoment{500};

}  // namespace

class ParameterClient::Implementation {
 public:
  Implementation(const ParameterClientOptions& options, const ClientArenas& arenas)
      : options_(options), arenas_(arenas), work_(boost::asio::make_work_guard(io_)) {
    if (!options_.note) options_.note = [](const std::string&) {};
    for (std::size_t server = 0; server < options_.servers.size(); ++server) {
      channels_.push_back(std::make_unique<ShardChannel>(io_, options_, static_cast<int>(server),
                                                         arenas_, [this] { check(); }));
    }
    thread_ = std::thread([this] { network::run_with_spin(io_); });
  }

  ~Implementation() {
    boost::asio::post(io_, [this] { channels_.clear(); });
    work_.reset();
    thread_.join();
  }

  std::uint64_t start(const server::ModelProgress& behind, Deadline deadline) {
    demand([=, this] { for_each([=](ShardChannel& channel) { channel.connect(deadline); }); },
           [](ShardChannel& channel) { return channel.client().membership().joined(); }, deadline,
           "joining", kNoTime);
    if (options_.worker == 0) make_servers_agree(behind, deadline);
    demand(
        [=, this] {
          for_each([=, this](ShardChannel& channel) {
            if (options_.worker == 0 && channel.client().needs_values()) channel.bring(behind);
            channel.pull_exact();
          });
        },
        [](ShardChannel& channel) { return channel.pulled(); }, deadline,
        "waiting for the first parameters of", kNoTime);
    return place_in_the_job();
  }

  // Each server decides for itself whether the job begins again, from what it has seen. Where some
  // have no model, those that have one must have worker 0's, or go back to that too.
  void make_servers_agree(const server::ModelProgress& behind, Deadline deadline) {
    std::vector<std::string> without, ahead;
    on_client_thread([&] {
      for (const auto& channel : channels_) {
        const server::JoinedBody& body = channel->client().joined_body();
        if (channel->empty() || (body.initialized && body.version == behind.version)) continue;
        (body.initialized ? ahead : without).push_back(std::to_string(channel->server()));
      }
    });
    if (without.empty() || ahead.empty()) return;
    const std::string differ = label() + "servers have no model (" + join(without, ", ") +
                               ") where others are under way (" + join(ahead, ", ") + ")";
    if (options_.join != membership::JoinKind::kCheckpoint) {
      throw PeerError(differ + ": end all servers and workers, and start the job anew, or go on " +
                      "from a checkpoint with --resume");
    }
    options_.note(differ + "; all go back to the checkpoint");
    demand(
        [=, this] {
          for_each([](ShardChannel& channel) {
            if (channel.client().joined_body().initialized) channel.client().go_back();
          });
        },
        [](ShardChannel& channel) { return channel.client().needs_values(); }, deadline,
        "going back to the checkpoint with", kNoTime);
  }

  // The steps that all servers have of this worker. One that was started again from its snapshot
  // may have fewer than the others: those are made again, for it alone.
  std::uint64_t place_in_the_job() {
    if (options_.specs.front().mode == server::ServerMode::kSync) {
      std::uint64_t version = std::numeric_limits<std::uint64_t>::max();
      for (const server::ModelProgress& each : progress())
        version = std::min(version, each.version);
      return version;
    }
    const auto own = static_cast<std::size_t>(options_.worker);
    std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
    for (const server::ModelProgress& each : progress()) steps = std::min(steps, each.pushes[own]);
    post([this, steps, own] {
      for_each([&](ShardChannel& channel) {
        if (!channel.empty()) channel.leave_out(channel.client().progress().pushes[own] - steps);
      });
    });
    return steps;
  }

  std::vector<server::ModelProgress> progress() {
    std::vector<server::ModelProgress> all;
    on_client_thread([&] {
      for (const auto& channel : channels_) {
        if (!channel->empty()) all.push_back(channel->client().progress());
      }
    });
    return all;
  }

  void begin_push() {
    sent_ = 0;
    post([this] { for_each([](ShardChannel& channel) { channel.begin_push(); }); });
  }

  void extend_push(std::int64_t count) {
    if (count - sent_ < kWorthSending) return;
    sent_ = count;
    post([this, count] { for_each([&](ShardChannel& channel) { channel.extend_push(count); }); });
  }

  void finish_push() {
    const auto all = static_cast<std::int64_t>(arenas_.gradients.size());
    request(
        [this, all] {
          for_each([&](ShardChannel& channel) {
            channel.pull_parameters();  // which come back while the rest still goes there
            channel.extend_push(all);
          });
        },
        [](ShardChannel& channel) { return channel.step_done(); });
  }

  void push_again() {
    const auto all = static_cast<std::int64_t>(arenas_.gradients.size());
    request(
        [this, all] {
          for_each([&](ShardChannel& channel) {
            if (channel.was_fenced()) channel.push(all);
          });
        },
        [](ShardChannel& channel) { return channel.step_done(); });
  }

  StepOutcome wait(Deadline deadline) {
    await(deadline, "waiting for new parameters of", kOthersTime);
    return outcome_;
  }

  bool take_back(Deadline deadline) {
    demand([this] { for_each([](ShardChannel& channel) { channel.take_back(); }); },
           [](ShardChannel& channel) { return channel.pulled(); }, deadline,
           "taking a gradient back from");
    std::size_t made = 0;
    std::size_t missing = 0;
    on_client_thread([&] {
      for (const auto& channel : channels_) {
        if (channel->empty()) continue;
        ++(channel->push_made() ? made : missing);
      }
    });
    if (missing == 0 || made == 0) return missing == 0;
    // Whatever made the round there is on its way to the others.
    const auto all = static_cast<std::int64_t>(arenas_.gradients.size());
    demand(
        [this, all] {
          for_each([&](ShardChannel& channel) {
            if (!channel.push_made()) channel.push(all);
          });
        },
        [](ShardChannel& channel) { return channel.pulled() && channel.push_made(); }, deadline,
        "waiting for new parameters of");
    return true;
  }

  void refresh(bool with_slots, Deadline deadline) {
    const auto pulled = [](ShardChannel& channel) { return channel.pulled(); };
    demand([this] { for_each([](ShardChannel& channel) { channel.pull_exact(); }); }, pulled,
           deadline, "taking the parameters of");
    if (!with_slots) return;
    for (std::size_t slot = 0; slot < arenas_.slots.size(); ++slot) {
      demand([=, this] { for_each([=](ShardChannel& channel) { channel.pull_slot(slot); }); },
             pulled, deadline, "taking the optimizer's state of");
    }
  }

  void wait_for_others() {
    demand([this] { for_each([](ShardChannel& channel) { channel.pull_when_alone(); }); },
           [](ShardChannel& channel) { return channel.pulled(); }, deadline_in(kAnyTime),
           "waiting for the other workers of", kNoTime);
  }

  bool others_are_gone() {
    try {
      demand([this] { for_each([](ShardChannel& channel) { channel.pull_when_alone(); }); },
             [](ShardChannel& channel) { return channel.pulled(); }, deadline_in(kAMoment),
             "asking for the other workers of", kNoTime);
    } catch (const PeerError&) {
      if (thrown_) throw;
      return false;  // no answer
    }
    return true;
  }

  void leave_without_a_word() { thrown_ = true; }

  void leave(membership::LeaveKind how, Deadline deadline) noexcept {
    if (thrown_) return;  // the caller knows
    try {
      demand([=, this] { for_each([=](ShardChannel& channel) { channel.leave(how); }); },
             [](ShardChannel& channel) { return channel.left(); }, deadline, "leaving");
    } catch (const std::exception& error) {
      options_.note(std::string("warning: ") + error.what());
    }
  }

 private:
  using Done = bool (*)(ShardChannel&);

  template <class Body>
  void for_each(const Body& body) {
    for (const auto& channel : channels_) body(*channel);
  }

  template <class Work>
  void post(Work work) {
    boost::asio::post(io_, [this, work = std::move(work)] {
      try {
        work();
      } catch (...) {
        fail(std::current_exception());
      }
    });
  }

  // The client's thread: whether what is waited for has come.
  void check() {
    if (done_ == nullptr) return;
    for (const auto& channel : channels_) {
      if (const auto failure = channel->failure()) {
        fail(with_all_who_are_missing(failure));
        return;
      }
    }
    for (const auto& channel : channels_) {
      if (!done_(*channel)) return;
    }
    outcome_ = {};
    outcome_.finished = true;
    for (const auto& channel : channels_) channel->add_to(outcome_);
    outcome_.version = channels_.front()->client().version();
    answer();
  }

  // One server that cannot be reached ends the wait, but a user wants to hear of all.
  std::exception_ptr with_all_who_are_missing(const std::exception_ptr& failure) const {
    std::vector<std::string> missing;
    for (const auto& channel : channels_) {
      if (!channel->connected()) missing.push_back(channel->text());
    }
    if (missing.size() < 2) return failure;
    try {
      std::rethrow_exception(failure);
    } catch (const PeerError& error) {
      return std::make_exception_ptr(
          PeerError(std::string(error.what()) + "; missing: " + join(missing, ", ")));
    } catch (...) {
      return failure;
    }
  }

  void fail(const std::exception_ptr& error) {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = error;
      failed_.store(true, std::memory_order_release);
    }
    changed_.notify_all();
  }

  void answer() {
    done_ = nullptr;
    {
      const std::lock_guard lock(mutex_);
      answered_.store(requested_, std::memory_order_release);
    }
    changed_.notify_all();
  }

  // The caller's thread. What makes it done counts only once it has begun: until then everything
  // looks as the request before has left it.
  template <class Begin>
  void request(Begin begin, Done done) {
    post([this, number = ++last_request_, begin, done] {
      requested_ = number;
      done_ = done;
      begin();
      check();
    });
  }

  template <class Begin>
  void demand(Begin begin, Done done, Deadline deadline, const std::string& doing,
              std::chrono::milliseconds grace = kAnswerTime) {
    request(begin, done);
    await(deadline, doing, grace);
  }

  bool answered() const {
    return answered_.load(std::memory_order_acquire) == last_request_ ||
           failed_.load(std::memory_order_acquire);
  }

  void await(Deadline deadline, const std::string& doing, std::chrono::milliseconds grace) {
    // As the event loop does: a small model's answer comes sooner than a sleeper wakes.
    const Clock::time_point look_until = Clock::now() + network::kAttention;
    while (!answered() && Clock::now() < look_until) ::sched_yield();
    std::unique_lock lock(mutex_);
    const auto until = [&](Deadline end) {
      return wait_or_stop(changed_, lock, end, options_.stop, grace, [&] { return answered(); });
    };
    WaitEnd end = until(std::min(deadline, Clock::now() + kSayWhoIsMissing));
    if (end == WaitEnd::kLate && deadline > Clock::now()) {
      lock.unlock();
      options_.note(doing + " " + missing());
      lock.lock();
      end = until(deadline);
    }
    if (end == WaitEnd::kCame) {
      if (!error_) return;
      thrown_ = true;
      std::rethrow_exception(error_);
    }
    lock.unlock();
    const std::string what = doing + " " + missing();
    if (end == WaitEnd::kStopped) throw InterruptedError(label() + "interrupted while " + what);
    throw PeerError(label() + "no answer in time " + what);
  }

  // Whom the request waits for, asked on the client's thread.
  std::string missing() {
    std::vector<std::string> names;
    on_client_thread([&] {
      for (const auto& channel : channels_) {
        if (done_ != nullptr && !done_(*channel)) names.push_back(channel->text());
      }
    });
    return join(names, ", ");
  }

  // Returns when it has been done there.
  template <class Work>
  void on_client_thread(const Work& work) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  std::string label() const { return "worker " + std::to_string(options_.worker) + ": "; }

  ParameterClientOptions options_;
  ClientArenas arenas_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::vector<std::unique_ptr<ShardChannel>> channels_;  // used by the client's thread alone
  Done done_ = nullptr;             // of the request under way; the client's thread's alone
  std::uint64_t requested_ = 0;     // its number; likewise
  std::int64_t sent_ = 0;           // the caller's thread's alone
  std::uint64_t last_request_ = 0;  // likewise

  std::mutex mutex_;  // guards error_, and the two atomics where they are waited for
  std::condition_variable changed_;
  std::exception_ptr error_;
  bool thrown_ = false;  // `error_`, at the caller; its thread's alone
  StepOutcome outcome_;  // written before answered_ becomes its request's number, read after
  std::atomic<std::uint64_t> answered_{0};
  std::atomic<bool> failed_{false};
  std::thread thread_;  // last: it uses all of the above
};

ParameterClient::ParameterClient(const ParameterClientOptions& options, const ClientArenas& arenas)
    : implementation_(std::make_unique<Implementation>(options, arenas)) {}
ParameterClient::~ParameterClient() = default;

std::uint64_t ParameterClient::start(const server::ModelProgress& behind, Deadline deadline) {
  try {
    return implementation_->start(behind, deadline);
  } catch (const InterruptedError&) {
    implementation_->leave_without_a_word();  // a goodbye would have to be waited for, too
    throw;
  }
}
void ParameterClient::begin_push() { implementation_->begin_push(); }
void ParameterClient::extend_push(std::int64_t count) { implementation_->extend_push(count); }
void ParameterClient::finish_push() { implementation_->finish_push(); }
StepOutcome ParameterClient::wait(Deadline deadline) { return implementation_->wait(deadline); }
void ParameterClient::refresh(bool with_slots, Deadline deadline) {
  implementation_->refresh(with_slots, deadline);
}
bool ParameterClient::take_back(Deadline deadline) { return implementation_->take_back(deadline); }
void ParameterClient::push_again() { implementation_->push_again(); }
void ParameterClient::wait_for_others() { implementation_->wait_for_others(); }
bool ParameterClient::others_are_gone() { return implementation_->others_are_gone(); }
std::vector<server::ModelProgress> ParameterClient::progress() {
  return implementation_->progress();
}
void ParameterClient::leave(membership::LeaveKind how, Deadline deadline) noexcept {
  implementation_->leave(how, deadline);
}

}  // namespace cohort::serving
