#include "methods/all_reduce.h"

#include <optional>

#include "config/fields.h"
#include "core/error.h"
#include "methods/bucket_exchange.h"
#include "methods/bucket_tuner.h"
#include "methods/replica_comparison.h"
#include "methods/shared_settings.h"
#include "methods/statistics.h"

namespace cohort::methods {
namespace {

class AllReduce final : public UpdateMethod, public OverlappedExchange {
 public:
  explicit AllReduce(const MethodOptions& options)
      : options_(options), every_(steps_between_exchanges(options.own)) {}

  void start(Replica& replica) override {
    if (alone()) return;
    require_same_model(replica, *options_.control, deadline());
    copy_from_first_rank(replica, *options_.control, deadline());
    exchange_.emplace(*options_.gradients, options_.gradients_on_device, options_.patience,
                      options_.arrivals);
    segments_.clear();
    for (const Replica::Segment& segment : replica.segments()) {
      segments_.push_back({segment.range.begin, segment.range.size + segment.padding});
    }
    if (options_.board != nullptr) {
      // On one GPU nothing is gained by sums that begin early, and each costs two meetings.
      const std::int64_t all = replica.numel() * static_cast<std::int64_t>(sizeof(float));
      options_.buckets = {.first_bytes = all, .bytes = all};
    } else if (options_.tune_buckets) {
      tuner_.emplace(replica.numel() * static_cast<std::int64_t>(sizeof(float)));
      options_.buckets.bytes = tuner_->bytes();
    }
    plan({});
  }

  void gradients_ready(Replica& replica, Range range) override {
    if (alone() || local_steps()) return;
    if (learning_) arrivals_.push_back(bucket_at(segments_, range.begin));
    const auto bucket = static_cast<std::size_t>(bucket_at(buckets_, range.begin));
    missing_[bucket] -= range.size;
    while (next_ < order_.size() && missing_[static_cast<std::size_t>(order_[next_])] == 0) {
      exchange_->submit(replica.gradients(), buckets_[static_cast<std::size_t>(order_[next_])]);
      ++next_;
    }
  }

  void update(Replica& replica, const StepInfo& info) override {
    if (alone()) {
      replica.apply_gradients(info.lr);
      return;
    }
    if (local_steps()) {
      replica.apply_gradients(info.lr);
      averaged_ = false;
      if ((info.step + 1) % every_ == 0) average(replica);
    } else {
      COHORT_CHECK(next_ == order_.size(), "all gradients of a step are ready");
      options_.doing(Phase::kExchanging);
      exchange_->wait();
      options_.doing(Phase::kUpdating);
      replica.apply_gradients(info.lr, 1.0 / options_.size);
      begin_next_step();
    }
    if (!local_steps() || averaged_) compare_when_due(replica, options_, info.step);
  }

  void materialize(Replica& replica) override {
    if (alone()) return;
    if (!averaged_) average(replica);
    share_statistics(replica, options_);
    last_step_ = {};  // what follows is no step
  }

  void visit_state(StateVisitor&) override {}

 private:
  // A single rank on a GPU goes the whole way all the same: it costs next to nothing there.
  bool alone() const { return options_.size == 1 && !options_.gradients_on_device; }
  bool local_steps() const { return every_ > 1; }
  Deadline deadline() const { return deadline_in(options_.patience); }

  // Buckets of the wanted size, sent in the order in which rank 0 saw the segments arrive; in the
  // arena's order as long as it is not known.
  void plan(std::vector<int> arrivals) {
    buckets_ = plan_buckets(segments_, options_.buckets);
    learning_ = arrivals.empty();
    if (learning_) {
      for (int i = 0; i < static_cast<int>(segments_.size()); ++i) arrivals.push_back(i);
    } else {
      broadcast_bytes(std::as_writable_bytes(std::span(arrivals)));
      learned_ = arrivals;
    }
    order_ = completion_order(buckets_, segments_, arrivals);
    arrivals_.clear();
    expect_all();
  }

  void expect_all() {
    missing_.clear();
    for (const Range& bucket : buckets_) missing_.push_back(bucket.size);
    next_ = 0;
  }

  void begin_next_step() {
    if (learning_) {
      plan(std::move(arrivals_));
    } else if (tuner_ && !tuner_->done()) {
      tune();
    } else {
      expect_all();
    }
    last_step_ = Clock::now();
  }

  void tune() {
    expect_all();
    if (!last_step_) return;
    float seconds = static_cast<float>(seconds_between(*last_step_, Clock::now()));
    options_.control->all_reduce({&seconds, 1}, deadline());
    if (!tuner_->step(seconds)) return;
    options_.buckets.bytes = tuner_->bytes();
    plan(learned_);
  }

  void average(Replica& replica) {
    options_.doing(Phase::kExchanging);
    const auto mean = [&](const at::Tensor& values) {
      sum_over_ranks(*options_.gradients, options_.gradients_on_device, values, deadline());
      values.div_(options_.size);
    };
    mean(replica.parameters());
    for (const at::Tensor& slot : replica.slots()) mean(slot);
    averaged_ = true;
  }

  void broadcast_bytes(std::span<std::byte> bytes) {
    options_.control->broadcast(bytes, 0, deadline());
  }

  MethodOptions options_;
  const Step every_;             // steps between exchanges
  std::vector<Range> segments_;  // with their padding: they tile the arena
  std::vector<Range> buckets_;
  std::vector<int> order_;             // in which buckets are sent
  std::vector<std::int64_t> missing_;  // elements of each bucket not yet ready in this step
  std::size_t next_ = 0;               // place in order_ of the next to send
  bool learning_ = true;               // this step shows the order
  std::vector<int> arrivals_;          // segments in the order they came, while learning
  std::vector<int> learned_;           // the same, rank 0's, once known
  bool averaged_ = true;
  std::optional<BucketTuner> tuner_;
  std::optional<Clock::time_point> last_step_;
  std::optional<BucketExchange> exchange_;  // last: its thread ends first
};

}  // namespace

std::unique_ptr<UpdateMethod> make_all_reduce(const MethodOptions& options) {
  return std::make_unique<AllReduce>(options);
}

MethodTraits all_reduce_traits() {
  return {.settings = {
              {"bucket",
               config::setting_group::kWorkers,
               &config::RunConfig::bucket,
               "all-reduce: MiB of gradients sent at once; auto: measure and pick",
               0,
               0,
               {}},
              {"first-bucket",
               config::setting_group::kWorkers,
               &config::RunConfig::first_bucket,
               "all-reduce: MiB of the first, so that sending begins early",
               0.001,
               1e6,
               {}},
              average_every_field(),
              check_replicas_field(),
          }};
}

}  // namespace cohort::methods
