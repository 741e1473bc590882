// Lists of addresses as other programs' flags and variables have them.
#pragma once

#include <string>
#include <vector>

namespace cohort::dialects {

// "host:port,host:port" as its parts, blanks around them left out; [::1]:port for IPv6. Throws
// ConfigError, in which `source` names the flag or the variable, when a part is no such address, or
// occurs twice and repeats are refused.
enum class Repeats { kRefused, kAllowed };
std::vector<std::string> parse_hosts(const std::string& source, const std::string& text,
                                     Repeats repeats = Repeats::kRefused);

}  // namespace cohort::dialects
