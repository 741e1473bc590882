#include "core/text.h"

#include <algorithm>
#include <cstddef>

namespace cohort {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

}  // namespace

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == text.npos ? text.npos : end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

std::string nearest(std::string_view word, std::span<const std::string> known) {
  std::string best;
  std::size_t best_distance = word.size() / 3 + 2;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string unknown_name(std::string_view kind, std::string_view word,
                         std::span<const std::string> known) {
  std::string text = "unknown " + std::string(kind) + " '" + std::string(word) + "'";
  const std::string guess = nearest(word, known);
  if (!guess.empty()) text += "; did you mean '" + guess + "'?";
  return text + "\nknown: " + join(known, ", ");
}

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > (number < 0 ? 1 : 0);
       i -= 3) {
    text.insert(static_cast<std::size_t>(i), ",");
  }
  return text;
}

}  // namespace cohort
