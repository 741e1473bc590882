#include "engine/step_timing.h"

#include "core/clock.h"
#include "engine/batch_source.h"
#include "engine/rank_report.h"

namespace cohort::engine {
namespace {

StepTiming time_worker(const config::RunConfig& config, const data::DataSplits& data,
                       Worker& worker, Step warmup, Step steps) {
  const TrainerOptions& options = worker.options();
  const WorkerGroup group = worker.group();
  TrainingStep step(worker.model(), worker.replica(), worker.method(), options.step);
  worker.method().start(worker.replica());
  const Step total = warmup + steps;
  const auto source =
      make_batch_source(*data.train, worker.order(),
                        {.threads = options.loader_threads, .last_step = total}, options.placement);
  ClassificationSums sums;
  RankReport own;
  StepTiming timing;
  Traffic before;
  Clock::time_point start = Clock::now();
  for (Step i = 0; i < total; ++i) {
    if (i == warmup) {
      group.any(false);  // all begin together
      step.finish();
      worker.arrivals().take();
      before = worker.traffic();
      start = Clock::now();
    }
    const Clock::time_point asked = Clock::now();
    source->wait();
    const double waited = seconds_between(asked, Clock::now());
    worker.arrivals().begin(i, waited);
    const BatchTensors batch = source->take();
    const std::int64_t samples = worker.order().samples_of_all(i);
    step.run(batch, samples, {i, config.lr}, sums, waited);
    if (i >= warmup) timing.samples += samples;
  }
  if (auto* const exchange = dynamic_cast<methods::OverlappedExchange*>(&worker.method())) {
    exchange->drain(worker.replica());
  }
  own.times = step.finish();
  own.traffic[0] = worker.traffic() - before;
  group.any(false);  // and end together
  timing.wall_seconds = seconds_between(start, Clock::now());
  worker.method().materialize(worker.replica());
  own.arrivals = worker.arrivals().take();

  const std::vector<RankReport> reports = gather_reports(own, group);
  std::vector<std::vector<methods::StepArrivals>> arrivals;
  const auto share = 1.0 / static_cast<double>(reports.size());
  for (const RankReport& report : reports) {
    timing.times.data_seconds += share * report.times.data_seconds;
    timing.times.compute_seconds += share * report.times.compute_seconds;
    timing.times.exchange_seconds += share * report.times.exchange_seconds;
    timing.times.update_seconds += share * report.times.update_seconds;
    timing.traffic.sent += report.traffic[0].sent / reports.size();
    timing.traffic.received += report.traffic[0].received / reports.size();
    arrivals.push_back(report.arrivals);
  }
  timing.late = methods::find_late(arrivals, group.clock_offsets());
  timing.steps = steps;
  timing.parameters = worker.model().store().numel();
  timing.channels_last = options.placement.channels_last;
  return timing;
}

}  // namespace

StepTiming time_steps(const config::RunConfig& config, const data::DataSplits& data,
                      std::vector<collectives::Membership>& members, Step warmup, Step steps,
                      const WorkerSetup& setup) {
  StepTiming result;
  const Rank first = members.front().rank;
  run_workers(config, data, members, setup, [&](Worker& worker) {
    const StepTiming timing = time_worker(config, data, worker, warmup, steps);
    if (worker.member().rank == first) result = timing;
  });
  return result;
}

}  // namespace cohort::engine
