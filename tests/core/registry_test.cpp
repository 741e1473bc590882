#include "core/registry.h"

#include <gmock/gmock.h>

namespace cohort {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Shape {
 public:
  explicit Shape(int area) : area_(area) {}
  virtual ~Shape() = default;
  int area() const { return area_; }

 private:
  int area_;
};

std::unique_ptr<Shape> make_square(int side) { return std::make_unique<Shape>(side * side); }
std::unique_ptr<Shape> make_line(int) { return std::make_unique<Shape>(0); }

const Registry<Shape, int> kShapes("shape", {{"square", "four equal sides", make_square},
                                             {"line", "no area", make_line}});

TEST(Registry, MakesWhatIsAskedForWithItsArguments) {
  EXPECT_EQ(kShapes.make("square", 3)->area(), 9);
  EXPECT_EQ(kShapes.make("line", 3)->area(), 0);
  EXPECT_EQ(kShapes.find("line").description, "no area");
}

TEST(Registry, KeepsTheOrderOfItsTable) {
  EXPECT_THAT(kShapes.names(), ElementsAre("square", "line"));
  EXPECT_EQ(kShapes.entries().size(), 2U);
}

TEST(Registry, AnUnknownNameListsTheKnownOnesAndASuggestion) {
  try {
    kShapes.make("sqare", 1);
    FAIL() << "accepted an unknown name";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("unknown shape 'sqare'"), HasSubstr("did you mean 'square'?"),
                      HasSubstr("known: square, line")));
  }
}

}  // namespace
}  // namespace cohort
