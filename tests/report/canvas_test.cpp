// Both formats, as far as they can be checked without reading them: pictures_test.py does that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "report/png_canvas.h"
#include "report/svg_canvas.h"

namespace cohort::report {
namespace {

using testing::HasSubstr;
using testing::Not;

void draw_everything(Canvas& canvas) {
  const std::vector<Point> points = {{10, 10}, {50, 20.123456}, {-0.001, 30}};
  canvas.rectangle({5, 5, 20, 10}, {255, 0, 0});
  canvas.polyline(points, {{0, 0, 255}, 2, 0.5, {4, 2}});
  canvas.polyline(std::span(points).first(1), {});
  canvas.polygon(points, {0, 255, 0}, {{1, 2, 3}, 0, 1, {}});
  canvas.text({10, 50}, "</text><script>alert('1 & 2')</script>\xFF\x01", {});
}

TEST(SvgPicture, EscapesEveryText) {
  const std::string file = svg_picture({100, 60}, "<&\"'>", draw_everything);
  EXPECT_THAT(file, Not(HasSubstr("<script")));
  EXPECT_THAT(file, HasSubstr("&lt;script&gt;alert(&#39;1 &amp; 2&#39;)"));
  EXPECT_THAT(file, HasSubstr("<title>&lt;&amp;&quot;&#39;&gt;</title>"));
  EXPECT_THAT(file, HasSubstr("\xEF\xBF\xBD\xEF\xBF\xBD</text>"));
}

TEST(SvgPicture, WritesPlainShortNumbers) {
  const std::string file = svg_picture({100, 60}, "", draw_everything);
  EXPECT_THAT(file, HasSubstr("points=\"10,10 50,20.12 0,30\""));
  EXPECT_THAT(file, HasSubstr("stroke=\"#0000ff\" stroke-width=\"2\" stroke-opacity=\"0.5\" "
                              "stroke-dasharray=\"4 2\""));
  EXPECT_THAT(file, HasSubstr("viewBox=\"0 0 100 60\""));
  EXPECT_EQ(file, svg_picture({100, 60}, "", draw_everything));
}

TEST(PngPicture, IsAPngOfTheSizeAskedForOrSaysWhyNot) {
  if (!can_draw_png()) {
    EXPECT_THROW(png_picture({100, 60}, 2, draw_everything), ConfigError);
    GTEST_SKIP() << "built without Cairo";
  }
  const std::string file = png_picture({100, 60}, 1.5, draw_everything);
  EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1A\n");
  EXPECT_EQ(file.substr(12, 12), std::string("IHDR\0\0\0\x96\0\0\0\x5A", 12)) << "150 x 90";
}

TEST(PngPicture, RefusesWhatMemoryOrCairoCannotHold) {
  if (!can_draw_png()) GTEST_SKIP() << "built without Cairo";
  for (const Size size : {Size{40000, 10}, Size{0, 10}, Size{30000, 30000}}) {
    EXPECT_THROW(png_picture(size, 1, [](Canvas&) {}), ConfigError);
  }
}

}  // namespace
}  // namespace cohort::report
