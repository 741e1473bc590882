// One rank alone: the baseline that every other method is measured against and must equal when
// the group has one member. Sends nothing.
#pragma once

#include <memory>

#include "methods/update_method.h"

namespace cohort::methods {

class Local final : public UpdateMethod {
 public:
  void start(Replica&) override {}
  void update(Replica& replica, const StepInfo& info) override;
  void materialize(Replica&) override {}
  void visit_state(StateVisitor&) override {}
};

std::unique_ptr<UpdateMethod> make_local(const MethodOptions& options);
MethodTraits local_traits();

}  // namespace cohort::methods
