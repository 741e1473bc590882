// Small helpers for messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string lower(std::string text);           // A to Z alone
std::string with_commas(std::int64_t number);  // 1,234,567

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

// The entry of `known` that `word` was most likely meant to be, or "" when none is close.
std::string nearest(std::string_view word, std::span<const std::string> known);

// "unknown <kind> '<word>'; did you mean ...? known: a, b, c": the body of a ConfigError.
std::string unknown_name(std::string_view kind, std::string_view word,
                         std::span<const std::string> known);

}  // namespace cohort
