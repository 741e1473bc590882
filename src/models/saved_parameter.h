// How an autograd function remembers a Parameter until its backward pass: a context can keep
// integers, but no pointers.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>

#include "models/parameter_store.h"

namespace cohort::models {

inline std::int64_t to_integer(Parameter* parameter) {
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(parameter));
}

inline Parameter* to_parameter(const c10::IValue& value) {
  return reinterpret_cast<Parameter*>(static_cast<std::intptr_t>(value.toInt()));
}

}  // namespace cohort::models
