#include "methods/data_parallel.h"

#include "core/error.h"
#include "methods/bucket_exchange.h"
#include "methods/replica_comparison.h"
#include "methods/shared_settings.h"
#include "methods/statistics.h"

namespace cohort::methods {
namespace {

class DataParallel final : public UpdateMethod {
 public:
  explicit DataParallel(const MethodOptions& options) : options_(options) {}

  void start(Replica& replica) override {
    if (alone()) return;
    require_same_model(replica, *options_.control, deadline());
    copy_from_first_rank(replica, *options_.control, deadline());
  }

  void update(Replica& replica, const StepInfo& info) override {
    if (alone()) {
      replica.apply_gradients(info.lr);
      return;
    }
    // Before they change: what the gradients were computed with.
    compare_when_due(replica, options_, info.step);
    if (options_.arrivals != nullptr) options_.arrivals->arrived();
    options_.doing(Phase::kExchanging);
    sum_over_ranks(*options_.gradients, options_.gradients_on_device, replica.gradients(),
                   deadline());
    options_.doing(Phase::kUpdating);
    if (options_.rank == 0) replica.apply_gradients(info.lr, 1.0 / options_.size);
    broadcast_from(*options_.control, 0, replica.parameters(), deadline());
  }

  void materialize(Replica& replica) override { share_statistics(replica, options_); }
  void visit_state(StateVisitor&) override {}

 private:
  bool alone() const { return options_.size == 1; }
  Deadline deadline() const { return deadline_in(options_.patience); }

  MethodOptions options_;
};

}  // namespace

std::unique_ptr<UpdateMethod> make_data_parallel(const MethodOptions& options) {
  return std::make_unique<DataParallel>(options);
}

MethodTraits data_parallel_traits() {
  return {.workers = MethodTraits::Workers::kOneProcess,
          .splits_batch = true,
          .settings = {check_replicas_field()}};
}

}  // namespace cohort::methods
