#include "models/parameter_store.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace cohort::models {

namespace {

template <class Entry>
bool has_name(const std::deque<Entry>& entries, const std::string& name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.name == name; });
}

}  // namespace

ParameterStore::ParameterStore(at::Generator generator) : generator_(std::move(generator)) {}

Parameter* ParameterStore::add_parameter(std::string name, at::IntArrayRef shape,
                                         ParameterKind kind, const Initializer& initialize) {
  COHORT_CHECK(!has_name(parameters_, name) && !has_name(buffers_, name),
               "two tensors of a model are called " + name);
  const at::Device device = generator_.defined() ? generator_.device() : at::Device(at::kCPU);
  at::Tensor value = at::empty(shape, at::TensorOptions().dtype(at::kFloat).device(device));
  if (generator_.defined()) {
    c10::NoGradGuard no_gradient;
    initialize(value, generator_);
  }
  value.set_requires_grad(true);
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.value = std::move(value);
  parameter.kind = kind;
  parameters_.push_back(std::move(parameter));
  return &parameters_.back();
}

Buffer* ParameterStore::add_buffer(std::string name, at::Tensor value) {
  COHORT_CHECK(!has_name(parameters_, name) && !has_name(buffers_, name),
               "two tensors of a model are called " + name);
  buffers_.push_back(Buffer{std::move(name), std::move(value)});
  return &buffers_.back();
}

std::int64_t ParameterStore::numel() const {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters_) total += parameter.value.numel();
  return total;
}

Scope Scope::operator/(std::string_view child) const {
  Scope inner(*store_);
  inner.prefix_ = name(child);
  return inner;
}

std::string Scope::name(std::string_view leaf) const {
  std::string full = prefix_;
  if (!full.empty()) full += '.';
  full += leaf;
  return full;
}

}  // namespace cohort::models
