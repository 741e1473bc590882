// The variables that a launcher would set.
#pragma once

#include <map>
#include <string>

#include "launch/environment.h"

namespace cohort::launch {

using Variables = std::map<std::string, std::string>;

// What a job asks for variables, answered from `variables`, which must outlive it.
inline Variable lookup(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

}  // namespace cohort::launch
