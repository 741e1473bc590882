// What a worker tells the first one about the steps since the last record.
#pragma once

#include <vector>

#include "engine/classification.h"
#include "engine/traffic_book.h"
#include "engine/training_step.h"
#include "engine/worker_group.h"
#include "methods/arrival_log.h"

namespace cohort::engine {

struct RankReport {
  ClassificationSums::Values sums;
  StepTimes times;
  TrafficByPurpose traffic = {};
  bool has_links = false;  // its wire bytes are known
  std::vector<methods::StepArrivals> arrivals;
};

// By rank. All workers call it together; throws PeerError when what came is no report.
std::vector<RankReport> gather_reports(const RankReport& own, const WorkerGroup& group);

}  // namespace cohort::engine
