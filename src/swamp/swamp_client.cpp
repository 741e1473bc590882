#include "swamp/swamp_client.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "swamp/messages.h"
#include "swamp/swamp_channel.h"

namespace cohort::swamp {
namespace {

constexpr std::chrono::seconds kSayWhoIsMissing{3};
// Others may have days to go; the server gives up those who are dead.
constexpr std::chrono::hours kAnyTime{24 * 365};
// After the user asked to stop: for an answer of a server at work, and for what may never come.
constexpr std::chrono::milliseconds kAnswerTime{2000};
constexpr std::chrono::milliseconds kNoTime{0};

void check_own_spec(const SwampSpec& spec) {
  try {
    swamp_spec_from(to_json(spec).dump());
  } catch (const PeerError& error) {
    throw ConfigError(error.what());
  }
}

}  // namespace

class SwampClient::Implementation {
 public:
  explicit Implementation(const SwampClientOptions& options)
      : options_(options), work_(boost::asio::make_work_guard(io_)) {
    check_own_spec(options_.spec);
    if (!options_.note) options_.note = [](const std::string&) {};
    channel_ = std::make_unique<SwampChannel>(io_, options_, [this] { check(); });
    thread_ = std::thread([this] { io_.run(); });
  }

  ~Implementation() {
    boost::asio::post(io_, [this] {
      done_ = nullptr;
      channel_.reset();
    });
    work_.reset();
    thread_.join();
  }

  PulledModel start(std::span<float> values, Deadline deadline) {
    require_size(values.size());
    started_ = true;
    auto initial = std::make_shared<const std::vector<float>>(values.begin(), values.end());
    demand(
        [this, initial, deadline] {
          if (!channel_->connecting()) channel_->connect(deadline);
          if (options_.worker == 0) channel_->client().initialize(initial);
          channel_->client().pull(PullKind::kStart, 0);
        },
        &BestModelClient::pulled, deadline, "waiting for the first values of", kNoTime);
    return take_answer(values).value_or(PulledModel{});
  }

  std::uint64_t offer(std::span<const float> values, double claim, Deadline deadline) {
    require_size(values.size());
    const auto room = [&] { return error_ || posted_ - processed_ + unsent_ < kUnsentOffers; };
    {
      std::unique_lock lock(mutex_);
      const WaitEnd end = wait_or_stop(changed_, lock, deadline, options_.stop, kAnswerTime, room);
      if (end != WaitEnd::kCame) {
        lock.unlock();
        if (end == WaitEnd::kStopped) throw InterruptedError(label() + "interrupted: " + text());
        throw PeerError(label() + "no room for another model in time: " + text());
      }
      if (error_) std::rethrow_exception(error_);
      ++posted_;
    }
    auto model = std::make_shared<const std::vector<float>>(values.begin(), values.end());
    post([this, model = std::move(model), claim] {
      channel_->client().offer(model, claim);
      {
        const std::lock_guard lock(mutex_);
        ++processed_;
      }
      check();
    });
    return ++offers_;
  }

  std::optional<OfferVerdict> take_verdict() {
    const std::lock_guard lock(mutex_);
    if (verdicts_.empty()) return std::nullopt;
    OfferVerdict verdict = std::move(verdicts_.front());
    verdicts_.pop_front();
    return verdict;
  }

  std::optional<PulledModel> pull(std::span<float> into, PullKind kind, std::uint64_t has_version,
                                  Deadline deadline) {
    require_size(into.size());
    demand([this, kind, has_version] { channel_->client().pull(kind, has_version); },
           &BestModelClient::pulled, deadline,
           kind == PullKind::kFinal ? "waiting for the last of" : "waiting for a model of",
           kind == PullKind::kFinal ? kNoTime : kAnswerTime);
    return take_answer(into);
  }

  void leave_without_a_word() { started_ = false; }

  void leave(Deadline deadline) noexcept {
    if (!started_) return;  // nobody knows of this worker
    try {
      demand([this] { channel_->client().leave(); }, &BestModelClient::left, deadline, "leaving");
    } catch (const std::exception& error) {
      options_.note(std::string("warning: ") + error.what());
    }
  }

 private:
  using Done = bool (BestModelClient::*)() const;

  void require_size(std::size_t size) const {
    if (static_cast<std::int64_t>(size) == options_.spec.values) return;
    throw ConfigError(label() + "a model of " + std::to_string(size) + " values in a swamp of " +
                      std::to_string(options_.spec.values));
  }

  // The client's thread is idle until the next request: the answer's memory can be read here.
  std::optional<PulledModel> take_answer(std::span<float> into) const {
    const std::optional<PulledModel>& answer = channel_->client().answer();
    const std::span<const float> values = channel_->client().values();
    if (answer) std::copy(values.begin(), values.end(), into.begin());
    return answer;
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

  void fail(const std::exception_ptr& error) {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = error;
    }
    changed_.notify_all();
  }

  // The client's thread: what has come, and whether it is what is waited for.
  void check() {
    BestModelClient& client = channel_->client();
    {
      const std::lock_guard lock(mutex_);
      for (OfferVerdict& verdict : client.take_verdicts()) verdicts_.push_back(std::move(verdict));
      unsent_ = client.unsent();
      if (const auto failure = channel_->failure(); failure && !error_) error_ = failure;
      if (done_ != nullptr && (client.*done_)()) {
        done_ = nullptr;
        answered_ = requested_;
      }
    }
    changed_.notify_all();
  }

  template <class Begin>
  void demand(Begin begin, Done done, Deadline deadline, const std::string& doing,
              std::chrono::milliseconds grace = kAnswerTime) {
    const std::uint64_t number = ++last_request_;
    post([this, number, begin, done] {
      begin();
      requested_ = number;
      done_ = done;
      check();
    });
    std::unique_lock lock(mutex_);
    const auto until = [&](Deadline end) {
      return wait_or_stop(changed_, lock, end, options_.stop, grace,
                          [&] { return answered_ == number || error_; });
    };
    WaitEnd end = until(std::min(deadline, Clock::now() + kSayWhoIsMissing));
    if (end == WaitEnd::kLate && deadline > Clock::now()) {
      lock.unlock();
      options_.note(doing + " " + text());
      lock.lock();
      end = until(deadline);
    }
    if (end == WaitEnd::kCame) {
      // An answer that came before the failure is one.
      if (answered_ != number) std::rethrow_exception(error_);
      return;
    }
    lock.unlock();
    const std::string what = doing + " " + text();
    cancel();
    if (end == WaitEnd::kLate) throw PeerError(label() + "no answer in time " + what);
    throw InterruptedError(label() + "interrupted while " + what);
  }

  void cancel() {
    post([this] {
      done_ = nullptr;
      channel_->client().cancel_pull();
    });
  }

  // Asked on the client's thread, which never waits.
  std::string text() {
    std::promise<std::string> told;
    std::future<std::string> answer = told.get_future();
    boost::asio::post(io_, [&] { told.set_value(channel_->text()); });
    return answer.get();
  }

  std::string label() const { return "worker " + std::to_string(options_.worker) + ": "; }

  SwampClientOptions options_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::unique_ptr<SwampChannel> channel_;  // used by the client's thread alone
  Done done_ = nullptr;                    // of the request under way; the client's thread's alone
  std::uint64_t requested_ = 0;            // its number; likewise
  std::uint64_t last_request_ = 0;         // the caller's thread's alone
  std::uint64_t offers_ = 0;               // likewise
  bool started_ = false;                   // likewise

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::exception_ptr error_;
  std::uint64_t answered_ = 0;
  std::uint64_t posted_ = 0;     // offers given to the client's thread
  std::uint64_t processed_ = 0;  // taken by it
  std::size_t unsent_ = 0;       // of these, not under way
  std::deque<OfferVerdict> verdicts_;
  std::thread thread_;  // last: it uses all of the above
};

SwampClient::SwampClient(const SwampClientOptions& options)
    : implementation_(std::make_unique<Implementation>(options)) {}
SwampClient::~SwampClient() = default;

PulledModel SwampClient::start(std::span<float> values, Deadline deadline) {
  try {
    return implementation_->start(values, deadline);
  } catch (const InterruptedError&) {
    implementation_->leave_without_a_word();  // a goodbye would have to be waited for, too
    throw;
  }
}
std::uint64_t SwampClient::offer(std::span<const float> values, double claim, Deadline deadline) {
  return implementation_->offer(values, claim, deadline);
}
std::optional<OfferVerdict> SwampClient::take_verdict() { return implementation_->take_verdict(); }
std::optional<PulledModel> SwampClient::pull(std::span<float> into, std::uint64_t has_version,
                                             Deadline deadline) {
  return implementation_->pull(into, PullKind::kPolicy, has_version, deadline);
}
std::optional<PulledModel> SwampClient::final_best(std::span<float> into) {
  return implementation_->pull(into, PullKind::kFinal, 0, deadline_in(kAnyTime));
}
void SwampClient::leave(Deadline deadline) noexcept { implementation_->leave(deadline); }

}  // namespace cohort::swamp
