// Ranks, processes and pushes are counted in ints; containers are not.
#pragma once

#include <cstddef>

namespace cohort::server::simulation {

inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace cohort::server::simulation
