// The folder for the sockets of this user's processes.
#pragma once

#include <string>

#include "launch/environment.h"

namespace cohort::launch {

// The folder's path: XDG_RUNTIME_DIR where that is a folder of this user with mode 0700, otherwise
// `fallback`, made when it is missing. Throws ConfigError when the fallback is a link, or not a
// folder, or another user's, or open to others.
std::string private_folder(const Variable& variable, const std::string& fallback);
std::string fallback_folder();  // for that: /tmp/cohort-UID

}  // namespace cohort::launch
