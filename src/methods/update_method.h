// How the ranks of a group keep their replicas learning together.
//
// The engine computes gradients; the method decides what is exchanged, with whom, and when the
// optimizer steps: that order is the method. One object per rank, used from that rank's thread.
// Costs (bytes, time) are measured around the method, never by it.
#pragma once

#include <string_view>

#include "core/registry.h"
#include "core/types.h"
#include "methods/replica.h"
#include "methods/state_visitor.h"

namespace cohort {

struct StepInfo {
  Step step = 0;  // counted from 0 over the whole run, also after a resume
  double lr = 0;  // what the schedule gives for it
};

class UpdateMethod {
 public:
  virtual ~UpdateMethod() = default;

  // Called once before the first step, also of a resumed run. Afterwards all replicas are equal.
  virtual void start(Replica& replica) = 0;

  // Called while backward runs, in the order gradients become complete, once for every range of
  // the arena: what a method may send early.
  virtual void gradients_ready(Replica& replica, Range range) = 0;

  // Called after backward. Turns gradients() into the parameters for the next step.
  virtual void update(Replica& replica, const StepInfo& info) = 0;

  // Finishes what is in flight: before an evaluation, a checkpoint and the end.
  virtual void settle(Replica& replica) = 0;

  // Estimates, error memory, clocks: what a checkpoint must hold besides the replica's own state.
  virtual void visit_state(StateVisitor& visitor) = 0;
};

// What a method is built from.
struct MethodOptions {
  Rank rank = 0;
  int size = 1;
};

using MethodRegistry = Registry<UpdateMethod, const MethodOptions&>;
const MethodRegistry& methods();

}  // namespace cohort
