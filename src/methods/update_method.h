// How the ranks of a group keep their replicas learning together.
//
// The engine computes gradients; the method decides what is exchanged, with whom, and when the
// optimizer steps: that order is the method. Where ranks have different numbers of samples in a
// step, the engine has weighted their gradients so that the plain mean over the ranks is the mean
// over all samples. One object per rank, used from that rank's thread.
// Costs (bytes, time) are measured around the method, never by it.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "collectives/collectives.h"
#include "core/activity.h"
#include "core/registry.h"
#include "core/types.h"
#include "gossip/settings.h"
#include "methods/arrival_log.h"
#include "methods/buckets.h"
#include "methods/method_traits.h"
#include "methods/replica.h"
#include "methods/state_visitor.h"

namespace cohort::transport {
class MeteredTransport;  // transport/metered.h
}
namespace cohort::kernels {
class MessageBoard;  // collectives/one_gpu.h
}

namespace cohort::methods {

struct ServerAccess;  // server_access.h
class ServerLog;      // server_log.h

// What a method wants of the next batch.
enum class StepKind {
  kTrain,  // its gradient
  kProbe,  // only its loss: there is no backward pass, and gradients() mean nothing
};

// How a run comes to its end.
enum class Ending {
  kComplete,
  kInterrupted,  // somebody waits for the checkpoint: nothing that takes long
};

struct StepInfo {
  Step step = 0;  // counted from 0 over the whole run, also after a resume
  double lr = 0;  // what the schedule gives for it
  // Of a probe: the mean over its batch. The losses of other steps are not read from their device.
  double loss = std::numeric_limits<double>::quiet_NaN();
  double epoch = 0;  // at which the step begins
};

class UpdateMethod {
 public:
  virtual ~UpdateMethod() = default;

  // Called once before the first step, also of a resumed run. Afterwards all replicas are equal.
  virtual void start(Replica& replica) = 0;

  // Called before the forward pass of every step, perhaps more than once. Afterwards parameters()
  // are those to train on: a method may have left them on their way while the batch was loaded.
  virtual StepKind before_step(Replica&) { return StepKind::kTrain; }

  // Called after backward. Turns gradients() (of a probe: info.loss) into the parameters for the
  // next step, which before_step() or materialize() may have to wait for.
  virtual void update(Replica& replica, const StepInfo& info) = 0;

  // Finishes what is in flight: before an evaluation, a checkpoint and the end.
  virtual void materialize(Replica& replica) = 0;

  // Called once after the last step, also of a run that was interrupted; materialize() follows.
  // What other workers still do to a model in common is waited for here.
  virtual void finish(Replica&, Ending) {}

  // Estimates, error memory, clocks: what a checkpoint must hold besides the replica's own state.
  virtual void visit_state(StateVisitor& visitor) = 0;
};

// For a method that exchanges while gradients are computed.
class OverlappedExchange {
 public:
  // Called while backward runs, in the order gradients become complete, once for every range of
  // the arena: what a method may send early.
  virtual void gradients_ready(Replica&, Range) {}

  // Waits until what is in flight has been sent and has come, and leaves all else as it is: before
  // bytes are counted, so that they belong to the steps that sent them.
  virtual void drain(Replica&) {}

 protected:
  ~OverlappedExchange() = default;
};

// For a method with which a lost rank does not end the others (Membership::elastic).
class ElasticMethod {
 public:
  // Between two steps: another rank is back. It goes on from rank 0's model.
  virtual void welcome(Replica& replica, Rank rank) = 0;

  // This rank is the one, and `replica` holds that model; the others have taken `step` steps. Comes
  // after start(), and instead of a state of its own; before it visit_entry() brings what else the
  // newcomer has to have of rank 0's.
  virtual void enter(Replica& replica, Step step) = 0;
  virtual void visit_entry(StateVisitor& visitor) = 0;

 protected:
  ~ElasticMethod() = default;
};

enum class StatisticsPolicy {
  kFirstRank,     // everybody takes rank 0's batch-norm statistics when the method materializes the
                  // model
  kMean,          // everybody takes the mean over the ranks
  kSynchronised,  // they never differ: the layers exchange them in every pass
};

// What a method is built from. Everything pointed to outlives the method.
struct MethodOptions {
  Rank rank = 0;
  int size = 1;
  collectives::Collectives* control = nullptr;  // for the thread that trains; null when alone
  collectives::Collectives* gradients =
      nullptr;                            // for a thread that exchanges meanwhile; null when alone
  bool gradients_on_device = false;       // Membership's
  Activity* activity = nullptr;           // null: nobody asks
  ArrivalLog* arrivals = nullptr;         // null: nobody asks
  const ServerAccess* servers = nullptr;  // of methods with servers; null for the others
  ServerLog* server_log = nullptr;        // null: nobody asks
  transport::MeteredTransport* messages = nullptr;         // between all ranks; of gossip
  std::shared_ptr<kernels::MessageBoard> board = nullptr;  // Membership's
  bool enters = false;  // the others are under way: enter() will follow start()
  std::function<void(const std::string&)> note = nullptr;  // a line for people, from any thread

  BucketSizes buckets = {};
  bool tune_buckets = false;  // find buckets.bytes by measuring the first steps
  StatisticsPolicy statistics = StatisticsPolicy::kFirstRank;
  gossip::GossipSettings gossip = {};  // of gossip; the compressor also of dgc
  config::SettingValues own = {};      // RunConfig::own: what the method declares and reads itself
  Seed seed = 1;                       // of the run
  std::chrono::nanoseconds patience = std::chrono::minutes(10);  // with a rank that is late

  void doing(Phase phase) const {
    if (activity != nullptr) activity->set(phase);
  }
};

using MethodRegistry = RegistryWithTraits<MethodTraits, UpdateMethod, const MethodOptions&>;
const MethodRegistry& methods();

}  // namespace cohort::methods
