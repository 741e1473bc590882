// Makes the ranks' batch-norm statistics equal.
#pragma once

#include "methods/update_method.h"

namespace cohort::methods {

// All ranks call it together.
void share_statistics(Replica& replica, const MethodOptions& options);

}  // namespace cohort::methods
