// Several ranks of one test: replicas of a model, and methods that exchange between them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/shared_memory.h"
#include "methods/server_access.h"
#include "methods/tiny_model.h"
#include "methods/update_method.h"
#include "serving/server_group.h"
#include "swamp/swamp_group.h"
#include "transport/in_process.h"
#include "transport/metered.h"
#include "transport/rank_threads.h"

namespace cohort::methods {

inline std::vector<std::unique_ptr<transport::MeteredTransport>> make_metered_group(int ranks) {
  std::vector<std::unique_ptr<transport::MeteredTransport>> group;
  for (auto& transport : transport::make_in_process_group(ranks)) {
    group.push_back(std::make_unique<transport::MeteredTransport>(std::move(transport)));
  }
  return group;
}

struct Channels {
  explicit Channels(int ranks)
      : size(ranks),
        control(collectives::make_shared_memory_group(ranks)),
        gradients(collectives::make_shared_memory_group(ranks)),
        messages(make_metered_group(ranks)) {}

  MethodOptions options(Rank rank) {
    MethodOptions made;
    made.rank = rank;
    made.size = size;
    made.control = control[static_cast<std::size_t>(rank)].get();
    made.gradients = gradients[static_cast<std::size_t>(rank)].get();
    made.messages = messages[static_cast<std::size_t>(rank)].get();
    made.patience = std::chrono::seconds(60);
    return made;
  }
  // For methods with servers: two of them, which take steps as a replica with such options would.
  void serve(MethodOptions& made, const ReplicaOptions& replica, double lr) {
    const std::lock_guard lock(mutex);
    if (!servers) {
      servers = std::make_unique<serving::ServerGroup>(2);
      access.servers = servers->addresses();
      access.job = servers->job;
      access.spec.workers = size;
      access.spec.optimizer = replica.optimizer;
      access.spec.optimizer_options = replica.optimizer_options;
      access.spec.schedule_options.lr = lr;
      access.weight_decay = replica.weight_decay;
      access.sharding = server::Sharding::kWhole;
    }
    made.servers = &access;
  }
  // For methods whose server keeps the best model.
  void serve_best(MethodOptions& made) {
    const std::lock_guard lock(mutex);
    if (!best_models) {
      best_models = std::make_unique<swamp::SwampGroup>();
      best_models->options.workers = size;
      best_models->start();
      const swamp::SwampClientOptions client = best_models->client(0, {});
      access.servers = {client.server};
      access.job = client.job;
      access.swamp = {.workers = size, .policy = "latest"};
    }
    made.servers = &access;
  }
  void leave(Rank rank, const std::string& reason) {
    messages[static_cast<std::size_t>(rank)]->close();
    control[static_cast<std::size_t>(rank)]->leave(reason);
    gradients[static_cast<std::size_t>(rank)]->leave(reason);
  }

  int size;
  std::vector<std::unique_ptr<collectives::Collectives>> control;
  std::vector<std::unique_ptr<collectives::Collectives>> gradients;
  std::vector<std::unique_ptr<transport::MeteredTransport>> messages;
  std::mutex mutex;  // guards the making of those below
  std::unique_ptr<serving::ServerGroup> servers;
  std::unique_ptr<swamp::SwampGroup> best_models;
  ServerAccess access;
};

// Sums over all ranks leave one of them in the dark when another throws: it must leave, as the
// engine makes it, or the others wait for their whole patience.
inline void run_group(Channels& channels, const std::function<void(Rank)>& body) {
  const std::vector<std::string> errors = transport::run_ranks(channels.size, [&](Rank rank) {
    try {
      body(rank);
    } catch (const std::exception& error) {
      channels.leave(rank, error.what());
      throw;
    }
  });
  for (const std::string& error : errors) {
    if (!error.empty()) throw PeerError(error);
  }
}

// Two layers in parallel, declared in another order than backward reaches them, and two that a pass
// may leave out.
class BranchingModel final : public models::Model {
 public:
  explicit BranchingModel(std::uint64_t seed = 1)
      : models::Model(at::detail::createCPUGenerator(seed)),
        head_(models::Scope(store()) / "head", 6, 5),
        extra_(models::Scope(store()) / "extra", 32, 6),
        left_(models::Scope(store()) / "left", 32, 6),
        other_(models::Scope(store()) / "other", 32, 6, {.bias = false}),
        right_(models::Scope(store()) / "right", 32, 6) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    const at::Tensor flat = inputs.flatten(1);
    at::Tensor sum = left_(flat) + right_(flat);
    if (use_extra) sum = sum + extra_(flat);
    if (use_other) sum = sum + other_(flat);
    return head_(at::relu(sum));
  }

  bool use_extra = false;
  bool use_other = false;

 private:
  models::Linear head_;
  models::Linear extra_;
  models::Linear left_;
  models::Linear other_;
  models::Linear right_;
};

// What tells the method of gradients while backward runs; null where it wants none.
inline Replica::GradientListener listener_of(Replica& replica, UpdateMethod& method) {
  auto* const exchange = dynamic_cast<OverlappedExchange*>(&method);
  if (exchange == nullptr) return nullptr;
  return [&replica, exchange](Range range) { exchange->gradients_ready(replica, range); };
}

// One step of a rank as the engine takes it, in as many passes as there are batches; the losses'
// sum counts.
inline void take_step(models::Model& model, Replica& replica, UpdateMethod& method,
                      const StepInfo& info, const std::vector<TinyBatch>& batches,
                      const std::function<void(std::size_t)>& before_pass = nullptr) {
  replica.set_gradient_listener(listener_of(replica, method));
  method.before_step(replica);
  replica.begin_step();
  for (std::size_t pass = 0; pass < batches.size(); ++pass) {
    if (before_pass) before_pass(pass);
    replica.begin_pass(pass + 1 == batches.size());
    tiny_loss(model, batches[pass]).backward();
  }
  replica.finish_backward();
  method.update(replica, info);
  replica.set_gradient_listener(nullptr);
}

}  // namespace cohort::methods
