#include "data/text.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace cohort::data {
namespace {

// Inputs travel as float32, which is exact up to here.
constexpr std::int64_t kMaxWords = std::int64_t{1} << 24;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Bytes of the UTF-8 sequence that `text` begins with; 0 if it is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool too_large = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

void check_utf8(std::string_view text, const std::string& source) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text.substr(i));
    if (length == 0) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(i), '\n');
      throw FileError(source + ": line " + std::to_string(line) +
                      " is not UTF-8; is it a text file?");
    }
    i += length;
  }
}

template <class Number>
std::vector<std::int32_t> numbers_of(std::string_view text, bool lowercase,
                                     const std::string& source, Number number) {
  check_utf8(text, source);
  std::vector<std::int32_t> numbers;
  const std::string end_of_line(kEndOfLine);
  std::string word;
  bool line_open = false;
  const auto end_word = [&] {
    if (word.empty()) return;
    numbers.push_back(number(word));
    word.clear();
  };
  for (const char c : text) {
    line_open = c != '\n';
    if (is_space(c)) {
      end_word();
      if (c == '\n') numbers.push_back(number(end_of_line));
    } else {
      word += lowercase && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  end_word();
  if (line_open) numbers.push_back(number(end_of_line));
  return numbers;
}

}  // namespace

std::int32_t Vocabulary::find(const std::string& word) const {
  auto found = numbers_.find(word);
  if (found == numbers_.end()) found = numbers_.find(std::string(kUnknownWord));
  COHORT_CHECK(found != numbers_.end(), "a vocabulary without a word for unknown ones");
  return found->second;
}

std::int32_t Vocabulary::add(const std::string& word) {
  const auto [place, is_new] = numbers_.try_emplace(word, static_cast<std::int32_t>(size()));
  if (is_new) words_.push_back(word);
  return place->second;
}

std::vector<std::int32_t> learn_words(std::string_view text, bool lowercase,
                                      const std::string& source, Vocabulary& vocabulary) {
  auto numbers = numbers_of(text, lowercase, source, [&](const std::string& word) {
    if (vocabulary.size() > kMaxWords - 3) {
      throw FileError(source + ": more than " + std::to_string(kMaxWords) + " different words");
    }
    return vocabulary.add(word);
  });
  vocabulary.add(std::string(kEndOfLine));
  vocabulary.add(std::string(kUnknownWord));
  return numbers;
}

std::vector<std::int32_t> look_up_words(std::string_view text, bool lowercase,
                                        const std::string& source, const Vocabulary& vocabulary) {
  return numbers_of(text, lowercase, source,
                    [&](const std::string& word) { return vocabulary.find(word); });
}

TextDataset::TextDataset(std::shared_ptr<const Vocabulary> vocabulary,
                         std::vector<std::int32_t> tokens, const TextOptions& options)
    : vocabulary_(std::move(vocabulary)), tokens_(std::move(tokens)), options_(options) {
  COHORT_CHECK(options_.columns >= 1 && options_.piece >= 1, "a text needs columns and pieces");
  if (words() - 1 < options_.columns) {
    throw ConfigError("a text of " + std::to_string(words()) + " words cannot be cut into " +
                      std::to_string(options_.columns) +
                      " columns, one for each row of the batches of all workers: use a smaller "
                      "--batch, fewer workers or more text");
  }
}

Range TextDataset::column(std::int64_t number) const {
  const std::int64_t predicted = words() - 1;
  const std::int64_t length = predicted / options_.columns;
  const std::int64_t longer = options_.equal_columns ? 0 : predicted % options_.columns;
  return {number * length + std::min(number, longer), length + (number < longer ? 1 : 0)};
}

std::int64_t TextDataset::pieces_of(std::int64_t number) const {
  return (column(number).size + options_.piece - 1) / options_.piece;
}

Range TextDataset::stretch(std::int64_t index) const {
  const Range all = column(index % options_.columns);
  const std::int64_t begin =
      std::min(all.end(), all.begin + index / options_.columns * options_.piece);
  return {begin, std::min(options_.piece, all.end() - begin)};
}

std::int64_t TextDataset::label(std::int64_t index) const {
  const Range range = stretch(index);
  return range.size == 0 ? kNoLabel : tokens_[static_cast<std::size_t>(range.begin + 1)];
}

void TextDataset::read(std::int64_t index, std::uint64_t, std::span<float> out) const {
  const Range range = stretch(index);
  const auto first = tokens_.begin() + range.begin;
  const auto rest = std::copy(first, first + range.size, out.begin());
  std::fill(rest, out.end(), 0.0F);
}

void TextDataset::read_labels(std::int64_t index, std::span<std::int64_t> out) const {
  const Range range = stretch(index);
  const auto first = tokens_.begin() + range.begin + 1;
  const auto rest = std::copy(first, first + range.size, out.begin());
  std::fill(rest, out.end(), kNoLabel);
}

const TextDataset* as_text(const Dataset& data) { return dynamic_cast<const TextDataset*>(&data); }

}  // namespace cohort::data
