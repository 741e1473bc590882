#include "data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "core/error.h"
#include "data/loader.h"
#include "data/registry.h"
#include "data/support.h"
#include "data/survey.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Vocabulary> letters() {
  auto vocabulary = std::make_shared<Vocabulary>();
  learn_words("a b c d e f g h i j k l m", false, "test", *vocabulary);
  return vocabulary;
}

// Words 0, 1, 2, ...
std::vector<std::int32_t> counting(std::int32_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < count; ++i) tokens.push_back(i);
  return tokens;
}

std::vector<std::int64_t> labels_of(const TextDataset& text, std::int64_t index) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(text.labels_per_sample()));
  text.read_labels(index, labels);
  return labels;
}

std::vector<float> words_of(const TextDataset& text, std::int64_t index) {
  std::vector<float> words(static_cast<std::size_t>(text.shape().numel()));
  text.read(index, 0, words);
  return words;
}

TEST(Words, AreNumberedAsTheyAppearAndEveryLineEnds) {
  Vocabulary vocabulary;
  const auto numbers = learn_words(" the cat \n\n the\tDog", false, "test", vocabulary);
  EXPECT_THAT(vocabulary.words(), ElementsAre("the", "cat", "<eos>", "Dog", "<unk>"));
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 2, 0, 3, 2));
  EXPECT_THAT(look_up_words("dog the\n", false, "test", vocabulary), ElementsAre(4, 0, 2));
}

TEST(Words, LoseCapitalsWhenAsked) {
  Vocabulary vocabulary;
  learn_words("The the THE \xC3\x89", true, "test", vocabulary);
  EXPECT_THAT(vocabulary.words(), ElementsAre("the", "\xC3\x89", "<eos>", "<unk>"));
}

TEST(Words, ThatAreNotUtf8NameTheFileAndTheLine) {
  for (const std::string bad :
       {"\xFF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    Vocabulary vocabulary;
    try {
      learn_words("good\n" + bad, false, "some.txt", vocabulary);
      FAIL() << "not UTF-8";
    } catch (const FileError& error) {
      EXPECT_THAT(error.what(), HasSubstr("some.txt: line 2"));
    }
  }
}

TEST(TextColumns, OfEqualLengthAreReadSideBySideAPieceAtATime) {
  const TextDataset text(letters(), counting(12), {.columns = 2, .piece = 3});
  ASSERT_EQ(text.size(), 4);  // 11 words with a label: two columns of 5 in pieces of 3 and 2
  EXPECT_THAT(words_of(text, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(labels_of(text, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(words_of(text, 1), ElementsAre(5, 6, 7));
  EXPECT_THAT(words_of(text, 2), ElementsAre(3, 4, 0));
  EXPECT_THAT(labels_of(text, 2), ElementsAre(4, 5, kNoLabel));
  EXPECT_THAT(labels_of(text, 3), ElementsAre(9, 10, kNoLabel));
  EXPECT_EQ(text.label(1), 6);
}

TEST(TextColumns, OfUnequalLengthPredictEveryWordButTheFirstOnce) {
  for (const std::int64_t columns : {1, 2, 3, 4, 5, 11}) {
    for (const std::int64_t piece : {1, 2, 3, 7, 50}) {
      const TextDataset text(letters(), counting(12),
                             {.columns = columns, .piece = piece, .equal_columns = false});
      std::multiset<std::int64_t> seen;
      for (std::int64_t i = 0; i < text.size(); ++i) {
        const auto words = words_of(text, i);
        const auto labels = labels_of(text, i);
        for (std::size_t j = 0; j < labels.size(); ++j) {
          if (labels[j] == kNoLabel) continue;
          EXPECT_EQ(labels[j], static_cast<std::int64_t>(words[j]) + 1);
          seen.insert(labels[j]);
        }
      }
      EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)) << columns << " " << piece;
      for (std::int64_t c = 1; c < columns; ++c)
        EXPECT_LE(text.pieces_of(c), text.pieces_of(c - 1));
    }
  }
}

TEST(TextColumns, NeedAWordEach) {
  EXPECT_NO_THROW(TextDataset(letters(), counting(5), {.columns = 4}));
  EXPECT_THROW(TextDataset(letters(), counting(4), {.columns = 4}), ConfigError);
}

TEST(TextColumns, GoOnFromBatchToBatchForEveryWorkerInItsOwnRows) {
  const TextDataset text(letters(), counting(13), {.columns = 4, .piece = 2});
  for (Rank rank = 0; rank < 2; ++rank) {
    const SampleOrder order(
        {.samples = text.size(), .batch_of_all = 4, .rank = rank, .workers = 2, .shuffle = false});
    EXPECT_EQ(order.steps_per_epoch(), 2);
    Loader loader(text, order, {.threads = 1, .last_step = 2});
    const LoadedBatch first = loader.next();
    const LoadedBatch second = loader.next();
    ASSERT_EQ(first.size(), 2);
    const auto begin = static_cast<float>(rank * 6);
    EXPECT_THAT(first.inputs(), ElementsAre(begin, begin + 1, begin + 3, begin + 4));
    EXPECT_EQ(first.labels().size(), 4u);
    EXPECT_EQ(second.inputs()[0], begin + 2);
    EXPECT_EQ(second.inputs()[2], begin + 5);
    EXPECT_EQ(second.labels()[1], kNoLabel);
  }
}

class TextFolder : public testing::Test {
 protected:
  TextFolder() {
    write("train.txt", "one two three\nfour two\n");
    write("valid.txt", "two\n");
    write("test.txt", "one five two\n");
    request_.name = "text";
    request_.search = {folder_.path()};
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
  }

  test::TemporaryFolder folder_;
  DataRequest request_;
};

TEST_F(TextFolder, IsReadWithTheTrainingTextsVocabulary) {
  const auto splits = load_data(request_);
  EXPECT_THAT(splits->train->class_names(),
              ElementsAre("one", "two", "three", "<eos>", "four", "<unk>"));
  const TextDataset* test = as_text(*splits->test);
  ASSERT_NE(test, nullptr);
  EXPECT_EQ(test->words(), 4);
  EXPECT_THAT(labels_of(*test, 0)[0], 5);  // "five" is unknown
  request_.text.evaluate_validation = true;
  EXPECT_EQ(as_text(*load_data(request_)->test)->words(), 2);
}

TEST_F(TextFolder, IsCutInWords) {
  request_.train_skip = 1;
  request_.train_size = 3;
  const auto splits = load_data(request_);
  EXPECT_EQ(as_text(*splits->train)->words(), 3);
  EXPECT_EQ(splits->train->class_names().size(), 6u);
  request_.train_size = 8;
  EXPECT_THROW(load_data(request_), ConfigError);
}

TEST_F(TextFolder, RefusesWhatIsForImages) {
  DataRequest other = request_;
  other.augment = "crop-flip";
  EXPECT_THROW(load_data(other), ConfigError);
  other = request_;
  other.image_size = 32;
  EXPECT_THROW(load_data(other), ConfigError);
}

TEST_F(TextFolder, WithoutWordsOrWithoutAFileIsTheFilesFault) {
  write("test.txt", " \n\n");
  EXPECT_THROW(load_data(request_), FileError);
  std::filesystem::remove(folder_.path() / "test.txt");
  EXPECT_THROW(load_data(request_), FileError);
}

TEST_F(TextFolder, IsSurveyedByItsWords) {
  const DataReport report = verify(request_);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.train, 7);
  EXPECT_EQ(report.test, 4);
  EXPECT_EQ(report.classes, 6);
}

}  // namespace
}  // namespace cohort::data
