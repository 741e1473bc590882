// Running text for language models: a stream of words in which each is predicted from those before.
//
// The stream is cut into `columns` stretches of equal length, which are read side by side, `piece`
// words at a time. A sample is one piece of one column; sample p x columns + c is piece p of column
// c. So batches of as many samples as there are columns, in the order of the data set, are what a
// recurrent network wants: row c goes on where row c of the batch before ended. The label of a word
// is the word after it.
//
// Unchanging once built; const methods may be called from several threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/types.h"
#include "data/dataset.h"

namespace cohort::data {

// Every end of a line is this word; words that the vocabulary lacks become the other.
inline constexpr std::string_view kEndOfLine = "<eos>";
inline constexpr std::string_view kUnknownWord = "<unk>";

// The words of a text, numbered as they first appear.
class Vocabulary {
 public:
  const std::vector<std::string>& words() const { return words_; }
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }

  // The number of a word; that of kUnknownWord when it has none.
  std::int32_t find(const std::string& word) const;
  // The same, but an unknown word gets the next number.
  std::int32_t add(const std::string& word);

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

// The words of `text` (UTF-8, separated by white space) and kEndOfLine after each line, as numbers.
// An incomplete last line counts as one. `lowercase` maps A to Z to a to z. The first form adds to
// the vocabulary, also kEndOfLine and kUnknownWord. Both throw FileError that names `source` for
// bytes that are not UTF-8 and for more words than a float can number.
std::vector<std::int32_t> learn_words(std::string_view text, bool lowercase,
                                      const std::string& source, Vocabulary& vocabulary);
std::vector<std::int32_t> look_up_words(std::string_view text, bool lowercase,
                                        const std::string& source, const Vocabulary& vocabulary);

struct TextOptions {
  std::int64_t columns = 1;
  std::int64_t piece = 35;
  // Columns of exactly equal length, a few words at the end unused; or every word is predicted
  // once, and the first columns may have one more.
  bool equal_columns = true;
};

class TextDataset final : public Dataset {
 public:
  // Throws ConfigError when a column would have no word to predict.
  TextDataset(std::shared_ptr<const Vocabulary> vocabulary, std::vector<std::int32_t> tokens,
              const TextOptions& options);

  std::int64_t columns() const { return options_.columns; }
  std::int64_t words() const { return static_cast<std::int64_t>(tokens_.size()); }
  // Pieces that a column has; the last may be short. No later column has more.
  std::int64_t pieces_of(std::int64_t column) const;

  std::int64_t size() const override { return options_.columns * pieces_of(0); }
  SampleShape shape() const override { return {1, 1, options_.piece}; }
  const std::vector<std::string>& class_names() const override { return vocabulary_->words(); }
  std::int64_t labels_per_sample() const override { return options_.piece; }
  // Of the sample's first word.
  std::int64_t label(std::int64_t index) const override;
  // What a short piece lacks is word 0 and kNoLabel.
  void read(std::int64_t index, std::uint64_t augmentation, std::span<float> out) const override;
  void read_labels(std::int64_t index, std::span<std::int64_t> out) const override;

 private:
  Range column(std::int64_t number) const;  // its words with a label
  Range stretch(std::int64_t index) const;  // those of a sample

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<std::int32_t> tokens_;
  TextOptions options_;
};

// The data set if it is text, else null.
const TextDataset* as_text(const Dataset& data);

}  // namespace cohort::data
