// Distributions that freshly made parameters are drawn from.
//
// Each function returns an Initializer, which draws from the generator it is given and from
// nothing else. Fan-in is the number of inputs one output sees (channels per group times kernel
// area), fan-out the number of outputs one input reaches.
#pragma once

#include "models/parameter_store.h"

namespace cohort::models {

Initializer constant(double value);
Initializer uniform(double bound);  // on [-bound, bound)
Initializer normal(double deviation);

// Normal around 0, cut off at [low, high] without piling mass on the ends.
Initializer truncated_normal(double deviation, double low, double high);

// Uniform with variance 2 / ((1 + a * a) fan-in). `negative_slope` a is sqrt(5) in torch's own
// convolutions and linear layers, which comes to a bound of 1 / sqrt(fan-in).
Initializer kaiming_uniform(double negative_slope);

// Normal with variance 2 / fan, for layers followed by ReLU.
Initializer kaiming_normal_fan_in();
Initializer kaiming_normal_fan_out();

// What torch gives weights when nothing else is asked for: kaiming_uniform(sqrt(5)).
Initializer torch_default_weight();

// What torch gives the bias that belongs to a weight with this fan-in.
Initializer torch_default_bias(std::int64_t fan_in);

}  // namespace cohort::models
