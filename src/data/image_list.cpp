#include "data/image_list.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/error.h"
#include "storage/file.h"

namespace cohort::data {
namespace {

constexpr std::uint64_t kMaxListBytes = std::uint64_t{1} << 30;
constexpr std::int64_t kMaxClasses = 1'000'000;
constexpr std::string_view kBlank = " \t\r\v\f";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// The label is what follows the last blank: a path may have blanks in it.
bool parse_line(std::string_view line, const std::filesystem::path& folder,
                ImageListing::Entry& entry) {
  const std::size_t blank = line.find_last_of(kBlank);
  if (blank == std::string_view::npos) return false;
  const std::string_view label = line.substr(blank + 1);
  const auto parsed = std::from_chars(label.data(), label.data() + label.size(), entry.label);
  if (parsed.ec != std::errc{} || parsed.ptr != label.data() + label.size()) return false;
  if (entry.label < 0 || entry.label >= kMaxClasses) return false;
  entry.file = folder / trimmed(line.substr(0, blank));
  return true;
}

}  // namespace

ImageListing read_image_list(const std::filesystem::path& file) {
  const std::string text = storage::read_text_file(file, kMaxListBytes);
  const std::filesystem::path folder = file.parent_path();
  ImageListing listing;
  std::int64_t classes = 0;
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    ImageListing::Entry entry;
    if (!parse_line(line, folder, entry)) {
      throw FileError(file.string() + ":" + std::to_string(number) +
                      ": expected the path of a picture and its label, a number from 0 to " +
                      std::to_string(kMaxClasses - 1) + ": train/cat/1.jpg 0");
    }
    classes = std::max(classes, entry.label + 1);
    listing.entries.push_back(std::move(entry));
  }
  if (listing.entries.empty()) throw FileError(file.string() + ": names no pictures");
  for (std::int64_t label = 0; label < classes; ++label) {
    listing.class_names.push_back(std::to_string(label));
  }
  return listing;
}

}  // namespace cohort::data
