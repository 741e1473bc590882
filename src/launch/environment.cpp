#include "launch/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace cohort::launch {
namespace {

struct Bounds {
  int least = 0;
  int most = std::numeric_limits<int>::max();
};

[[noreturn]] void refuse(const std::string& name, std::string_view value,
                         const std::string& wanted) {
  throw ConfigError("the variable " + name + "=" + std::string(value) + " must be " + wanted +
                    "; the launcher sets it, so start the job anew, or unset it to run alone");
}

int to_number(const std::string& name, std::string_view value, Bounds bounds) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || value.empty()) {
    refuse(name, value, "a whole number");
  }
  if (number < bounds.least || number > bounds.most) {
    refuse(name, value,
           bounds.most == std::numeric_limits<int>::max()
               ? "at least " + std::to_string(bounds.least)
               : "from " + std::to_string(bounds.least) + " to " + std::to_string(bounds.most));
  }
  return number;
}

std::optional<int> number_of(const Variable& variable, const std::string& name,
                             Bounds bounds = {}) {
  const char* value = variable(name.c_str());
  if (value == nullptr) return std::nullopt;
  return to_number(name, value, bounds);
}

bool has(const Variable& variable, const char* name) { return variable(name) != nullptr; }

struct Names {
  const char* source;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

std::optional<Place> read_place(const Variable& variable, const Names& names) {
  if (!has(variable, names.rank) || !has(variable, names.size)) return std::nullopt;
  Place place;
  place.source = names.source;
  place.size = *number_of(variable, names.size, {.least = 1});
  place.rank = *number_of(variable, names.rank, {.most = place.size - 1});
  place.local_size =
      number_of(variable, names.local_size, {.least = 1, .most = place.size}).value_or(0);
  const int neighbours = place.local_size > 0 ? place.local_size : place.size;
  place.local_rank = number_of(variable, names.local_rank, {.most = neighbours - 1}).value_or(0);
  return place;
}

// The tasks of each node, in order: "2(x3),1" says 2, 2, 2, 1.
int slurm_tasks_here(const std::string& name, std::string_view list, int node) {
  int first = 0;
  for (const std::string& entry : split(list, ',')) {
    const std::size_t open = entry.find("(x");
    const int tasks = to_number(name, std::string_view(entry).substr(0, open), {.least = 1});
    int nodes = 1;
    if (open != std::string::npos) {
      if (entry.back() != ')') refuse(name, list, "of the form 2(x3),1");
      nodes = to_number(name, std::string_view(entry).substr(open + 2, entry.size() - open - 3),
                        {.least = 1});
    }
    if (node - first < nodes) return tasks;
    first += nodes;
  }
  return 0;
}

std::optional<Place> read_slurm(const Variable& variable) {
  if (!has(variable, "SLURM_STEP_ID")) return std::nullopt;
  const char* size =
      has(variable, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  if (number_of(variable, size).value_or(1) == 1) return std::nullopt;
  std::optional<Place> place = read_place(variable, {.source = "Slurm",
                                                     .rank = "SLURM_PROCID",
                                                     .size = size,
                                                     .local_rank = "SLURM_LOCALID",
                                                     .local_size = ""});
  if (!place) return std::nullopt;
  const std::string tasks = "SLURM_STEP_TASKS_PER_NODE";
  if (const char* list = variable(tasks.c_str()); list != nullptr) {
    const int node = number_of(variable, "SLURM_NODEID").value_or(0);
    place->local_size = slurm_tasks_here(tasks, list, node);
  } else {
    // What the allocation has room for; the step may be smaller.
    const int room = number_of(variable, "SLURM_NTASKS_PER_NODE", {.least = 1}).value_or(0);
    place->local_size = std::min(room, place->size);
  }
  return place;
}

std::optional<Place> read_torchrun(const Variable& variable) {
  return read_place(variable, {.source = "torchrun",
                               .rank = "RANK",
                               .size = "WORLD_SIZE",
                               .local_rank = "LOCAL_RANK",
                               .local_size = "LOCAL_WORLD_SIZE"});
}

}  // namespace

// Scripts set these beside what the other launchers say.
Place with_meeting_point(Place place, const Variable& variable) {
  if (const char* address = variable("MASTER_ADDR"); address != nullptr) {
    place.master_address = address;
  }
  place.master_port = number_of(variable, "MASTER_PORT", {.least = 1, .most = 65535}).value_or(0);
  return place;
}

const char* own_variable(const char* name) { return std::getenv(name); }

std::optional<Place> detect_place(const Variable& variable) {
  constexpr Names kOpenMpi = {.source = "Open MPI",
                              .rank = "OMPI_COMM_WORLD_RANK",
                              .size = "OMPI_COMM_WORLD_SIZE",
                              .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
                              .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE"};
  constexpr Names kPmi = {.source = "PMI",
                          .rank = "PMI_RANK",
                          .size = "PMI_SIZE",
                          .local_rank = "MPI_LOCALRANKID",
                          .local_size = "MPI_LOCALNRANKS"};
  std::optional<Place> place = read_place(variable, kOpenMpi);
  if (!place) place = read_place(variable, kPmi);
  if (!place) place = read_slurm(variable);
  if (!place) place = read_torchrun(variable);
  if (!place) return std::nullopt;
  return with_meeting_point(std::move(*place), variable);
}

}  // namespace cohort::launch
