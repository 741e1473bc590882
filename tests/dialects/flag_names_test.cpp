#include "dialects/flag_names.h"

#include <gtest/gtest.h>

namespace cohort::dialects {
namespace {

TEST(FlagNames, AreThoseOfTheDialect) {
  const FlagNames names = {{"batch", "--batch_size"}, {"lr", "--learning_rate"}};
  EXPECT_EQ(in_words_of(names, "--batch is 5 here; --lr-gamma differs, and --lr=1"),
            "--batch_size is 5 here; the setting lr-gamma differs, and --learning_rate=1");
  EXPECT_EQ(in_words_of(names, "see --help; a--batch, a_--batch and ---batch are none"),
            "see --help; a--batch, a_--batch and ---batch are none");
  EXPECT_EQ(in_words_of({}, "--batch is 5"), "--batch is 5");
}

TEST(FlagNames, SwapNamesThatMeanSomethingElse) {
  const FlagNames names = {{"workers", "--world-size"}, {"loader-threads", "--workers"}};
  EXPECT_EQ(in_words_of(names, "--workers and --loader-threads"), "--world-size and --workers");
}

TEST(FlagNames, MayNameAValueToo) {
  const FlagNames names = {{"method", "--optimizer"},
                           {"method choco", "--optimizer parallel_choco"}};
  EXPECT_EQ(in_words_of(names, "use --method choco, not --method dgc or --method"),
            "use --optimizer parallel_choco, not --optimizer dgc or --optimizer");
}

TEST(FlagNames, FitIntoSentences) {
  EXPECT_EQ(in_words_of({{"lr", "--rate"}}, "a lower --lr, a lower --momentum or --warmup-epochs"),
            "a lower --rate, a lower momentum (a setting of cohort train) or the setting "
            "warmup-epochs");
}

TEST(FlagNames, AreFoundAmongTheFlags) {
  const FlagNames names = flag_names_among({"lr", "batch_size", "graph-topology", "colour"});
  EXPECT_EQ(
      names,
      (FlagNames{{"lr", "--lr"}, {"batch", "--batch_size"}, {"topology", "--graph-topology"}}));
}

}  // namespace
}  // namespace cohort::dialects
