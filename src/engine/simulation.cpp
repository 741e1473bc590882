#include "engine/simulation.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "engine/assemble.h"
#include "engine/loss_watch.h"
#include "engine/training_step.h"
#include "gossip/node.h"
#include "methods/flat_model.h"
#include "methods/method_traits.h"
#include "methods/settings.h"

namespace cohort::engine {
namespace {

struct SimulatedWorker {
  std::vector<float> model;               // as flat_model.h has it: parameters, then statistics
  std::vector<std::vector<float>> slots;  // of the optimizer
  std::int64_t updates = 0;
  std::unique_ptr<gossip::GossipNode> node;
  std::unique_ptr<data::SampleOrder> order;  // null: all share one
  std::unique_ptr<schedules::LearningRate> schedule;
  std::vector<std::pair<Rank, std::shared_ptr<const Bytes>>> inbox;
  std::vector<gossip::GossipNode::Outgoing> outbox;
};

// What a thread needs in order to be a worker for a moment.
struct Seat {
  std::unique_ptr<models::Model> model;
  std::unique_ptr<methods::Replica> replica;
  std::unique_ptr<methods::UpdateMethod> method;
  std::vector<float> inputs;
  std::vector<std::int64_t> labels;
  ClassificationSums sums;
};

float* data_of(const at::Tensor& tensor) { return tensor.data_ptr<float>(); }

}  // namespace

class Simulation::Implementation {
 public:
  Implementation(const config::RunConfig& config, const data::DataSplits& data)
      : config_(config), data_(data), size_(static_cast<int>(config.workers)) {
    if (methods::traits_of(config.method).models != methods::MethodTraits::Models::kAveraged) {
      throw ConfigError(
          "cohort simulate is for gossip: give --method choco, d-psgd, dcd, ecd or "
          "deep-squeeze, not " +
          config.method);
    }
    if (size_ < 2) throw ConfigError("give --workers: how many to simulate, at least 2");
    if (data.train->labels_per_sample() > 1) {
      throw ConfigError("cohort simulate has images only: --data " + config.data +
                        " is text, whose workers carry a state from step to step");
    }
    choose_stepsize(config_, size_,
                    largest_tensor(*build_model(config_, *data.train, InitialWeights::kLater)));
    seats_.resize(static_cast<std::size_t>(std::max<std::int64_t>(
        1, config.threads > 0 ? config.threads
                              : static_cast<std::int64_t>(std::thread::hardware_concurrency()))));
    for (Seat& seat : seats_) make_seat(seat);
    make_workers();
    options_ = trainer_options(config_, *seats_[0].model, order(), {0, size_, 0});
  }

  Step steps_per_epoch() const { return order().steps_per_epoch(); }
  Step total_steps() const { return options_.total_steps; }
  std::int64_t parameters() const { return parameters_; }

  void run(const std::atomic<bool>& stop, const std::function<void(const SimulatedMoment&)>& tell) {
    for (Step step = 0; step < total_steps() && !stop; ++step) {
      take_step(step);
      const Step done = step + 1;
      const bool last = done == total_steps();
      const std::int64_t epochs = order().epochs_ended_at(done);
      const bool evaluation =
          last || (config_.eval_every > 0 && epochs > 0 && epochs % config_.eval_every == 0);
      if (evaluation || done % config_.record_every == 0) tell(moment(done, evaluation));
    }
  }

 private:
  const data::SampleOrder& order() const { return order_ ? *order_ : *workers_[0].order; }

  void make_seat(Seat& seat) {
    seat.model = build_model(config_, *data_.train);
    seat.replica = std::make_unique<methods::Replica>(
        *seat.model, replica_options(config_, *seat.model, at::kCPU));
    seat.method = methods::methods().make("local", methods::MethodOptions{});
    seat.method->start(*seat.replica);
    seat.model->store().set_training(true);
  }

  void make_workers() {
    const methods::Replica& first = *seats_[0].replica;
    std::vector<Range> tensors;
    for (const methods::Replica::Segment& segment : first.segments()) {
      tensors.push_back({parameters_, segment.range.size});
      parameters_ += segment.range.size;
    }
    const gossip::GossipSettings settings = gossip_settings(config_);
    const auto topology = gossip::make_topology(settings, size_);
    const bool shared = config_.partition == "none" || config_.reshuffle;
    if (shared) {
      order_ = std::make_unique<data::SampleOrder>(
          data::SampleOrderOptions{.samples = data_.train->size(),
                                   .batch_of_all = batch_of_all(config_, size_),
                                   .seed = static_cast<Seed>(config_.seed),
                                   .shuffle = config_.shuffle,
                                   .drop_last = config_.drop_last});
    }
    workers_.resize(static_cast<std::size_t>(size_));
    for (Rank rank = 0; rank < size_; ++rank) {
      SimulatedWorker& worker = workers_[static_cast<std::size_t>(rank)];
      worker.model.resize(static_cast<std::size_t>(methods::flat_size(first)));
      methods::copy_model_to(worker.model, first);
      for (const at::Tensor& slot : first.slots()) {
        worker.slots.emplace_back(data_of(slot), data_of(slot) + slot.numel());
      }
      worker.node = gossip::make_gossip_node(settings, rank, topology, tensors);
      worker.node->start(own_parameters(worker));
      if (!shared) {
        // It cannot be moved: made in its place.
        worker.order.reset(
            new data::SampleOrder(sample_order(config_, *data_.train, {rank, size_, 0})));
      }
      worker.schedule = build_schedule(config_, order(), rank);
    }
  }

  std::span<float> own_parameters(SimulatedWorker& worker) const {
    return std::span(worker.model).first(static_cast<std::size_t>(parameters_));
  }

  // body(seat, rank) for every worker, on all seats; what one throws is thrown here.
  template <class Body>
  void for_all(const Body& body) {
    std::atomic<Rank> next = 0;
    std::exception_ptr error;
    std::mutex mutex;  // guards error
    const auto work = [&](Seat& seat) {
      at::set_num_threads(1);
      try {
        for (Rank rank = next++; rank < size_; rank = next++) {
          body(seat, rank, workers_[static_cast<std::size_t>(rank)]);
        }
      } catch (...) {
        next = size_;
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < seats_.size(); ++i) threads.emplace_back(work, std::ref(seats_[i]));
    work(seats_[0]);
    for (std::thread& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
  }

  void take_step(Step step) {
    std::vector<data::SampleRef> all;
    if (order_) order_->batch(step, all);
    const bool exchanges = (step + 1) % methods::steps_between_exchanges(config_) == 0;
    for_all([&](Seat& seat, Rank rank, SimulatedWorker& worker) {
      train(seat, rank, worker, step, all);
      if (!exchanges) return;
      check_finite(worker, rank, step);
      worker.node->begin_round(own_parameters(worker));
      worker.outbox = worker.node->take_outgoing();
    });
    if (!exchanges) return;
    for (Rank rank = 0; rank < size_; ++rank) {
      SimulatedWorker& worker = workers_[static_cast<std::size_t>(rank)];
      for (gossip::GossipNode::Outgoing& one : worker.outbox) {
        sent_ += one.frame->size();
        workers_[static_cast<std::size_t>(one.to)].inbox.emplace_back(rank, std::move(one.frame));
      }
      worker.outbox.clear();
    }
    for_all([&](Seat&, Rank, SimulatedWorker& worker) {
      for (const auto& [from, frame] : worker.inbox) worker.node->on_frame(from, *frame);
      worker.inbox.clear();
      COHORT_CHECK(worker.node->complete(), "everybody has sent");
      worker.node->end_round(own_parameters(worker));
    });
  }

  void train(Seat& seat, Rank rank, SimulatedWorker& worker, Step step,
             const std::vector<data::SampleRef>& all) {
    methods::Replica& replica = *seat.replica;
    methods::copy_model_from(worker.model, replica);
    for (std::size_t i = 0; i < worker.slots.size(); ++i) {
      std::memcpy(data_of(replica.slots()[i]), worker.slots[i].data(),
                  worker.slots[i].size() * sizeof(float));
    }
    replica.set_updates(worker.updates);
    const std::vector<data::SampleRef> own =
        worker.order ? worker.order->batch(step) : share_of(all, rank);
    const std::int64_t samples =
        worker.order ? worker.order->samples_of_all(step) : static_cast<std::int64_t>(all.size());
    TrainingStepOptions options = options_.step;
    options.rank = rank;
    methods::StepInfo info{step, worker.schedule->at(order().epochs_at(step))};
    info.epoch = order().epochs_at(step);
    TrainingStep(*seat.model, replica, *seat.method, options)
        .run(batch_of(seat, own), samples, info, seat.sums);
    methods::copy_model_to(worker.model, replica);
    for (std::size_t i = 0; i < worker.slots.size(); ++i) {
      std::memcpy(worker.slots[i].data(), data_of(replica.slots()[i]),
                  worker.slots[i].size() * sizeof(float));
    }
    worker.updates = replica.updates();
  }

  // As the workers of a real run divide a batch: evenly, the first ones one more.
  std::vector<data::SampleRef> share_of(const std::vector<data::SampleRef>& all, Rank rank) const {
    const std::size_t count = all.size();
    const auto size = static_cast<std::size_t>(size_);
    const auto place = static_cast<std::size_t>(rank);
    const std::size_t begin = place * (count / size) + std::min(place, count % size);
    const std::size_t length = count / size + (place < count % size ? 1 : 0);
    return {all.begin() + static_cast<std::ptrdiff_t>(begin),
            all.begin() + static_cast<std::ptrdiff_t>(begin + length)};
  }

  BatchTensors batch_of(Seat& seat, const std::vector<data::SampleRef>& samples) const {
    const data::SampleShape shape = data_.train->shape();
    const auto numel = static_cast<std::size_t>(shape.numel());
    seat.inputs.resize(samples.size() * numel);
    seat.labels.resize(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      data_.train->read(samples[i].index, samples[i].augmentation,
                        std::span(seat.inputs).subspan(i * numel, numel));
      seat.labels[i] = data_.train->label(samples[i].index);
    }
    const auto count = static_cast<std::int64_t>(samples.size());
    return {at::from_blob(seat.inputs.data(), {count, shape.channels, shape.height, shape.width},
                          at::kFloat),
            at::from_blob(seat.labels.data(), {count}, at::kLong)};
  }

  void check_finite(const SimulatedWorker& worker, Rank rank, Step step) const {
    double sum = 0;
    for (const float value : worker.model) sum += static_cast<double>(std::fabs(value));
    if (std::isfinite(sum)) return;
    throw RunError("the parameters of worker " + std::to_string(rank) +
                   " became infinite at step " + std::to_string(step + 1) +
                   ": training diverged; lower --lr or --consensus-stepsize, or send more");
  }

  SimulatedMoment moment(Step done, bool evaluation) {
    SimulatedMoment now;
    now.step = done;
    now.epoch = order().epochs_at(done);
    now.lr = workers_[0].schedule->at(order().epochs_at(done - 1));
    double loss = 0;
    double right = 0;
    for (Seat& seat : seats_) {
      const ClassificationSums::Values values = seat.sums.values();
      loss += values.loss;
      right += static_cast<double>(values.top1);
      now.samples += values.samples;
      seat.sums.reset();
    }
    now.loss = loss / static_cast<double>(now.samples);
    if (first_loss_ == 0) first_loss_ = now.loss;
    const double guessing = far_above_guessing(data_.train->class_names().size());
    if (!(now.loss <= divergence_limit(guessing, first_loss_))) {
      throw RunError("training diverged: the mean loss is " + std::to_string(now.loss) +
                     " at step " + std::to_string(done) +
                     "; lower --lr or --consensus-stepsize, or send more");
    }
    now.accuracy = right / static_cast<double>(now.samples);
    now.bytes_sent = std::exchange(sent_, 0);
    const std::vector<double> mean = mean_model();
    double squared = 0;
    for (SimulatedWorker& worker : workers_) {
      const std::span<float> own = own_parameters(worker);
      for (std::size_t i = 0; i < own.size(); ++i) {
        squared +=
            (static_cast<double>(own[i]) - mean[i]) * (static_cast<double>(own[i]) - mean[i]);
      }
    }
    now.consensus_distance = std::sqrt(squared / size_);
    if (evaluation) now.average = evaluate_mean(mean);
    return now;
  }

  std::vector<double> mean_model() const {
    std::vector<double> mean(workers_[0].model.size());
    for (const SimulatedWorker& worker : workers_) {
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += static_cast<double>(worker.model[i]);
    }
    for (double& value : mean) value /= size_;
    return mean;
  }

  Evaluation evaluate_mean(const std::vector<double>& mean) {
    const std::vector<float> narrow(mean.begin(), mean.end());
    methods::copy_model_from(narrow, *seats_[0].replica);
    return evaluate(*seats_[0].model, *data_.test, options_.evaluation);
  }

  config::RunConfig config_;
  const data::DataSplits& data_;
  int size_;
  std::int64_t parameters_ = 0;
  std::vector<Seat> seats_;
  std::vector<SimulatedWorker> workers_;
  std::unique_ptr<data::SampleOrder> order_;  // of all workers together; null: each has its own
  TrainerOptions options_;
  std::uint64_t sent_ = 0;
  double first_loss_ = 0;
};

Simulation::Simulation(const config::RunConfig& config, const data::DataSplits& data)
    : implementation_(std::make_unique<Implementation>(config, data)) {}

Simulation::~Simulation() = default;

Step Simulation::steps_per_epoch() const { return implementation_->steps_per_epoch(); }
Step Simulation::total_steps() const { return implementation_->total_steps(); }
std::int64_t Simulation::parameters() const { return implementation_->parameters(); }

void Simulation::run(const std::atomic<bool>& stop,
                     const std::function<void(const SimulatedMoment&)>& tell) {
  implementation_->run(stop, tell);
}

}  // namespace cohort::engine
