#include "methods/gossip_method.h"

#include <ATen/ops/from_blob.h>

#include <cmath>
#include <optional>

#include "core/error.h"
#include "methods/flat_arena.h"
#include "methods/gossip_exchange.h"
#include "methods/gpu_vectors.h"
#include "methods/replica_comparison.h"
#include "methods/shared_settings.h"
#include "methods/statistics.h"
#include "transport/metered.h"

namespace cohort::methods {
namespace {

class Gossip final : public UpdateMethod, public OverlappedExchange, public ElasticMethod {
 public:
  explicit Gossip(const MethodOptions& options)
      : options_(options), every_(steps_between_exchanges(options.own)) {}

  void start(Replica& replica) override {
    if (alone()) return;
    if (!options_.enters) {
      require_same_model(replica, *options_.control, deadline());
      copy_from_first_rank(replica, *options_.control, deadline());
    }
    const auto topology = gossip::make_topology(options_.gossip, options_.size);
    if (!topology->changes()) use_gpu(replica);
    parameters_.emplace(replica, replica.parameters(), gpu_ != nullptr);
    node_ = gossip::make_gossip_node(options_.gossip, options_.rank, topology,
                                     parameters_->tensors(), gpu_);
    parameters_->from_device();
    node_->start(parameters_->values());
    overlaps_ = options_.gossip.overlap && !node_->algorithm().answers_before_gradient();
    exchange_.emplace(*node_, *options_.messages,
                      GossipExchangeOptions{options_.patience, options_.note, options_.enters});
  }

  void update(Replica& replica, const StepInfo& info) override {
    replica.apply_gradients(info.lr);
    if (alone() || (info.step + 1) % every_ != 0) return;
    end_round();
    parameters_->from_device();
    if (!gpu_ && !std::isfinite(arena_norm(replica.parameters()))) diverged(info.step + 1);
    options_.doing(Phase::kUpdating);
    exchange_->begin(parameters_->values());
    under_way_ = true;
    if (!overlaps_) end_round();
    parameters_->to_device();
  }

  void drain(Replica&) override {
    if (under_way_) exchange_->wait();
    check_gpu();
  }

  void materialize(Replica& replica) override {
    if (alone()) return;
    end_round();
    check_gpu();
    if (options_.statistics == StatisticsPolicy::kMean) share_statistics(replica, options_);
  }

  void visit_state(StateVisitor& visitor) override {
    if (!node_) return;
    exchange_->between_rounds([&](gossip::GossipNode& node) {
      for (const gossip::GossipAlgorithm::State& state : node.vectors()) visit(visitor, state);
      for (auto [name, value] : node.numbers()) {
        const std::int64_t before = value;
        visitor.number("gossip." + name, value);
        if (value != before) node.set_number(name, value);
      }
    });
  }

  void welcome(Replica&, Rank rank) override {
    exchange_->lose(rank);  // it may have been back before it was missed
    end_round();
    exchange_->between_rounds([&](gossip::GossipNode& node) { node.on_returned(rank); });
  }

  void enter(Replica&, Step step) override {
    parameters_->from_device();
    exchange_->between_rounds([&](gossip::GossipNode& node) {
      node.enter(static_cast<std::uint64_t>(step / every_), parameters_->values(), entry_);
    });
    exchange_->hear();
  }

  // What is believed of a rank lags behind it, alike on all: who began with the truth would be
  // drawn away by all the others.
  void visit_entry(StateVisitor& visitor) override {
    exchange_->between_rounds([&](gossip::GossipNode& node) {
      const auto own = node.own_estimate();
      entry_.assign(own.begin(), own.end());
    });
    if (entry_.empty()) return;
    visitor.tensor(
        "gossip.entry",
        at::from_blob(entry_.data(), {static_cast<std::int64_t>(entry_.size())}, at::kFloat));
  }

 private:
  bool alone() const { return options_.size == 1; }
  Deadline deadline() const { return deadline_in(options_.patience); }

  // The messages of a round are there, and what they do to the parameters is done.
  void end_round() {
    if (!under_way_) return;
    options_.doing(Phase::kExchanging);
    exchange_->end(parameters_->values());
    under_way_ = false;
  }

  void use_gpu(const Replica& replica) {
    std::vector<Range> tensors;
    for (const Replica::Segment& segment : replica.segments()) tensors.push_back(segment.range);
    gpu_ = make_gpu_vectors(options_.gossip, tensors, replica.numel(), options_.board);
    if (gpu_) options_.messages->count_by(counted_bytes);
  }

  // A checkpoint holds the same whatever memory the vectors are in.
  void visit(StateVisitor& visitor, const gossip::GossipAlgorithm::State& state) {
    std::span<float> values = state.values;
    std::vector<float> here;
    if (gpu_) {
      here.resize(static_cast<std::size_t>(parameters_->tensors().back().end()));
      gpu_->copy(values, here);
      values = here;
    }
    visitor.tensor(
        "gossip." + state.name,
        at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat));
    if (gpu_) gpu_->copy(here, state.values);
  }

  // What is seen in main memory before every round is looked at here only when a record is due or
  // the model is wanted.
  void check_gpu() {
    if (!gpu_) return;
    std::uint64_t round = 0;
    exchange_->between_rounds([&](gossip::GossipNode&) { round = gpu_->first_infinite(); });
    if (round != GpuVectors::kNever) diverged(static_cast<Step>(round) * every_);
  }

  [[noreturn]] void diverged(Step step) const {
    throw RunError("the parameters became infinite at step " + std::to_string(step) +
                   ": training diverged; lower --lr" +
                   (compressors::compressors().find(options_.gossip.compressor).traits.exact
                        ? std::string()
                        : ", lower --consensus-stepsize where the method has one, or send more: " +
                              std::string("--compressor ") + options_.gossip.compressor +
                              " may be too coarse for --method " + options_.gossip.method));
  }

  MethodOptions options_;
  const Step every_;                 // steps between rounds
  std::shared_ptr<GpuVectors> gpu_;  // null: in main memory
  std::optional<FlatArena> parameters_;
  std::unique_ptr<gossip::GossipNode> node_;
  std::vector<float> entry_;  // the estimate of rank 0 that a newcomer begins with
  bool overlaps_ = false;
  bool under_way_ = false;
  std::optional<GossipExchange> exchange_;  // last: its thread ends first
};

}  // namespace

std::unique_ptr<UpdateMethod> make_gossip(const MethodOptions& options) {
  return std::make_unique<Gossip>(options);
}

}  // namespace cohort::methods
