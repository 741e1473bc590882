#include "methods/statistics.h"

#include "methods/bucket_exchange.h"

namespace cohort::methods {

void share_statistics(Replica& replica, const MethodOptions& options) {
  const at::Tensor& values = replica.statistics();
  if (values.numel() == 0 || options.size == 1) return;
  const Deadline deadline = deadline_in(options.patience);
  switch (options.statistics) {
    case StatisticsPolicy::kFirstRank:
      broadcast_from(*options.control, 0, values, deadline);
      return;
    case StatisticsPolicy::kMean:
      sum_over_ranks(*options.control, /*on_device=*/false, values, deadline);
      values.div_(options.control->present());
      return;
    case StatisticsPolicy::kSynchronised:
      return;
  }
}

}  // namespace cohort::methods
