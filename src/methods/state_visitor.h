// How training state gets into a checkpoint and back: the owner of the state names each piece, and
// the visitor either saves it or overwrites it in place. One walk serves both directions, so that
// what is saved and what is restored cannot differ.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace cohort::methods {

class StateVisitor {
 public:
  virtual ~StateVisitor() = default;

  // `value` keeps its identity, shape and type; only its elements may change.
  virtual void tensor(const std::string& name, const at::Tensor& value) = 0;
  virtual void number(const std::string& name, std::int64_t& value) = 0;
};

}  // namespace cohort::methods
