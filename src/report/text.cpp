#include "report/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace cohort::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

// Hundredths of the size, of the characters from ' ' to '~'.
constexpr std::array<std::uint8_t, 95> kAdvances = {
    32, 40, 46, 84, 64, 95, 78, 28, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 78, 75, 30, 30, 66, 56, 86, 75, 79,
    60, 79, 70, 64, 61, 73, 68, 99, 69,  61, 69, 39, 34, 39, 84, 50, 50, 61, 64, 55, 64, 62, 35, 64,
    63, 28, 28, 58, 28, 97, 63, 61, 64,  64, 41, 52, 39, 63, 59, 82, 59, 59, 53, 64, 34, 64, 84};
constexpr double kBoldFactor = 1.13;

struct Character {
  std::uint32_t code = 0;
  std::size_t length = 0;  // bytes; 0 when the bytes are no UTF-8
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(text[at]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  std::uint32_t code = lead & (0x7Fu >> length);
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(at) & 0x3Fu);
  }
  // Written longer than needed, half of a surrogate pair, or beyond Unicode.
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return {};
  return {code, length};
}

bool is_shown(std::uint32_t code) {
  return code >= 0x20 && (code < 0x7F || code > 0x9F) && code != 0xFFFE && code != 0xFFFF;
}

double advance(std::uint32_t code) {
  if (code >= ' ' && code <= '~') return kAdvances[code - ' '] / 100.0;
  return code >= 0x1100 ? 1.0 : 0.7;  // Chinese, Japanese and Korean are square
}

}  // namespace

std::string presentable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_of(text);
    const std::size_t length = character.length == 0 ? 1 : character.length;
    if (character.code >= '\t' && character.code <= '\r') {
      result += ' ';
    } else if (character.length == 0 || !is_shown(character.code)) {
      result += kReplacement;
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return result;
}

double text_width(std::string_view text, double size, bool bold) {
  const std::string shown = presentable(text);
  double width = 0;
  for (std::string_view rest = shown; !rest.empty();) {
    const Character character = first_of(rest);
    width += advance(character.code);
    rest.remove_prefix(character.length);
  }
  return width * size * (bold ? kBoldFactor : 1);
}

std::string shortened(std::string_view text, double width, double size, bool bold) {
  std::string shown = presentable(text);
  const double available = width / (size * (bold ? kBoldFactor : 1));
  const double for_ellipsis = advance(first_of(kEllipsis).code);
  double used = 0;
  std::size_t kept = 0;  // bytes that leave room for the ellipsis
  for (std::size_t at = 0; at < shown.size();) {
    const Character character = first_of(std::string_view(shown).substr(at));
    used += advance(character.code);
    at += character.length;
    if (used + for_ellipsis <= available) kept = at;
    if (used > available) return shown.substr(0, kept) + std::string(kEllipsis);
  }
  return shown;
}

double monospace_width(std::string_view text, double size) {
  constexpr double kAdvance = 0.602;  // of DejaVu Sans Mono
  const std::string shown = presentable(text);
  double count = 0;
  for (std::string_view rest = shown; !rest.empty(); ++count) {
    rest.remove_prefix(first_of(rest).length);
  }
  return count * kAdvance * size;
}

std::vector<std::string> wrapped(std::string_view text, double width, const WrapStyle& style) {
  const std::string shown = presentable(text);
  const auto width_of = [&](std::string_view part) {
    return style.monospace ? monospace_width(part, style.size)
                           : text_width(part, style.size, style.bold);
  };
  std::vector<std::string> lines{""};
  for (std::string_view rest = shown; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string joined = lines.back() + (lines.back().empty() ? "" : " ") + std::string(word);
    if (width_of(joined) <= width) {
      lines.back() = joined;
      continue;
    }
    if (!lines.back().empty()) lines.emplace_back();
    while (!word.empty()) {  // one that fits is done in one go
      std::size_t kept = first_of(word).length;
      while (kept < word.size() &&
             width_of(word.substr(0, kept + first_of(word.substr(kept)).length)) <= width) {
        kept += first_of(word.substr(kept)).length;
      }
      lines.back() = word.substr(0, kept);
      word.remove_prefix(kept);
      if (!word.empty()) lines.emplace_back();
    }
  }
  return lines;
}

}  // namespace cohort::report
