// What differs between the settings of two processes, for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cohort::storage {

// "--lr is 0.1 here and 0.2 at the others" for each member that is not the same in both objects;
// `other` is the one of the reader, `where` says whose the first is.
std::vector<std::string> differing_settings(const nlohmann::json& first,
                                            const nlohmann::json& other,
                                            const std::string& where = "at the others");

// The same for those members of `told` that `other` has.
std::vector<std::string> differences_from_told(const nlohmann::json& told,
                                               const nlohmann::json& other,
                                               const std::string& where);

}  // namespace cohort::storage
