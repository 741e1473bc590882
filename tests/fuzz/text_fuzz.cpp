// Any bytes in place of a text: words that the vocabulary has, or a FileError.
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "data/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool lowercase : {false, true}) {
    try {
      cohort::data::Vocabulary vocabulary;
      const auto learnt = cohort::data::learn_words(text, lowercase, "input", vocabulary);
      for (const std::int32_t word : learnt) {
        if (word < 0 || word >= vocabulary.size()) std::abort();
      }
      // What was learnt is known.
      if (cohort::data::look_up_words(text, lowercase, "input", vocabulary) != learnt) std::abort();
    } catch (const cohort::FileError&) {
    }
  }
  return 0;
}
