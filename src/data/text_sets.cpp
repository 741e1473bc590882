#include "data/text_sets.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "data/text.h"
#include "storage/file.h"

namespace cohort::data {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{8} << 30;

std::string read_text(const std::filesystem::path& file) {
  std::string text = storage::read_text_file(file, kLargestFile);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw FileError(file.string() + ": has no words");
  }
  return text;
}

void refuse(const DataRequest& request, const char* flag, const std::string& value) {
  throw ConfigError(std::string(flag) + " " + value + ": '" + request.name +
                    "' is text, not images; leave " + flag + " out");
}

void check_text_request(const DataRequest& request) {
  if (request.augment != "auto" && request.augment != "none") {
    refuse(request, "--augment", request.augment);
  }
  if (request.normalize != "auto" && request.normalize != "none") {
    refuse(request, "--normalize", request.normalize);
  }
  if (request.image_size != 0) refuse(request, "--image-size", std::to_string(request.image_size));
  if (request.train_skip < 0 || request.train_size < 0 || request.test_size < 0) {
    throw ConfigError("the number of words to use cannot be negative; 0 means all");
  }
}

// Words [skip, skip + size) of the stream; size 0: all that follow.
void keep(std::vector<std::int32_t>& words, std::int64_t skip, std::int64_t size,
          const std::filesystem::path& file) {
  const auto available = static_cast<std::int64_t>(words.size());
  // One word predicts none.
  if (skip > available - 2 || size > available - skip || size == 1) {
    throw ConfigError(file.string() + " has " + std::to_string(available) + " words: cannot use " +
                      (size == 0 ? "those" : std::to_string(size)) + " after the first " +
                      std::to_string(skip));
  }
  if (size > 0) words.resize(static_cast<std::size_t>(skip + size));
  words.erase(words.begin(), words.begin() + skip);
}

}  // namespace

bool is_text_set(std::string_view name) {
  return name == "wikitext-2" || name == "ptb" || name == "text";
}

std::unique_ptr<DataSplits> make_text(const DataRequest& request) {
  check_text_request(request);
  const FoundFiles files = locate(request.name, request.search);
  const TextRequest& text = request.text;
  const std::filesystem::path& train_file = files.train[0];
  const std::filesystem::path& test_file = text.evaluate_validation ? files.test[1] : files.test[0];

  auto vocabulary = std::make_shared<Vocabulary>();
  auto train = learn_words(read_text(train_file), text.lowercase, train_file.string(), *vocabulary);
  auto test = look_up_words(read_text(test_file), text.lowercase, test_file.string(), *vocabulary);
  keep(train, request.train_skip, request.train_size, train_file);
  keep(test, 0, request.test_size, test_file);

  auto splits = std::make_unique<DataSplits>();
  const std::int64_t test_columns =
      std::min(text.test_columns, static_cast<std::int64_t>(test.size()) - 1);
  splits->train = std::make_unique<TextDataset>(vocabulary, std::move(train),
                                                TextOptions{text.columns, text.piece, true});
  splits->test = std::make_unique<TextDataset>(vocabulary, std::move(test),
                                               TextOptions{test_columns, text.piece, false});
  splits->found_at = files.folder;
  return splits;
}

TextCounts count_words(const FoundFiles& files) {
  Vocabulary vocabulary;
  const auto count = [&](const std::filesystem::path& file, bool learn) {
    const std::string text = read_text(file);
    return static_cast<std::int64_t>(
        learn ? learn_words(text, false, file.string(), vocabulary).size()
              : look_up_words(text, false, file.string(), vocabulary).size());
  };
  TextCounts counts;
  counts.train = count(files.train[0], true);
  counts.test = count(files.test[0], false);
  counts.validation = count(files.test[1], false);
  counts.vocabulary = vocabulary.size();
  return counts;
}

}  // namespace cohort::data
