// Whether a process of this host lives, as the system tells.
#pragma once

#include <cstdint>
#include <optional>

namespace cohort::collectives {

// When a process began, in the system's own unit; nothing once it has ended. A number that has gone
// to another process since shows by another beginning.
std::optional<std::uint64_t> start_of_living_process(std::int64_t pid);

// Processes that see different process numbers, as those of two containers do, can only listen for
// each other. Equal where numbers mean the same.
std::uint64_t process_number_space();

}  // namespace cohort::collectives
