#include "dialects/host_list.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/text.h"

namespace cohort::dialects {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const bool bracketed = text.front() == '[' && text[colon - 1] == ']';
  if (!bracketed && text.find(':') != colon) return false;
  if (text.find_first_of(" \t/") != std::string::npos) return false;
  int port = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  return parsed.ec == std::errc{} && parsed.ptr == end && port > 0 && port < 65536;
}

}  // namespace

std::vector<std::string> parse_hosts(const std::string& source, const std::string& text,
                                     Repeats repeats) {
  std::vector<std::string> hosts;
  bool good = !text.empty();
  for (const std::string& part : split(text, ',')) {
    const std::string host = trimmed(part);
    good = good && is_address(host);
    if (repeats == Repeats::kRefused &&
        std::find(hosts.begin(), hosts.end(), host) != hosts.end()) {
      throw ConfigError(source + " has " + host + " twice: no two processes can listen there");
    }
    hosts.push_back(host);
  }
  if (good) return hosts;
  throw ConfigError(source + " takes addresses separated by commas, e.g. " +
                    "10.10.10.94:2222,10.10.10.95:2222; got '" + text + "'");
}

}  // namespace cohort::dialects
