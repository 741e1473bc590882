// The data sets that are text: wikitext-2, ptb, and any folder with three files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "data/locate.h"
#include "data/registry.h"

namespace cohort::data {

// Whether the registered set `name` is text.
bool is_text_set(std::string_view name);

// Reads the training text, from whose words the vocabulary is made, and the text to evaluate on,
// whose other words become kUnknownWord. request.train_size and the like count words. Throws as
// load_data() does.
std::unique_ptr<DataSplits> make_text(const DataRequest& request);

// How many words there are.
struct TextCounts {
  std::int64_t train = 0;
  std::int64_t validation = 0;
  std::int64_t test = 0;
  std::int64_t vocabulary = 0;
};
TextCounts count_words(const FoundFiles& files);

}  // namespace cohort::data
