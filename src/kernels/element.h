// What tensors that kernels work on are made of.
#pragma once

namespace cohort::kernels {

enum class Element { kFloat, kBFloat16 };

}  // namespace cohort::kernels
