#include "report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "report/curve_style.h"
#include "report/not_a_number.h"
#include "report/recording_canvas.h"

namespace cohort::report {
namespace {

Figure figure_of(std::vector<Point> points) {
  Figure figure{"A title", {"one"}, {}, {600, 400}};
  figure.panels.push_back(
      {.title = "Loss", .x_title = "epoch", .curves = {{std::move(points), {}}}});
  return figure;
}

RecordingCanvas drawn(const Figure& figure) {
  RecordingCanvas canvas;
  draw(figure, canvas);
  return canvas;
}

std::vector<std::string> texts_of(const RecordingCanvas& canvas) {
  std::vector<std::string> texts;
  for (const auto& text : canvas.texts) texts.push_back(text.text);
  return texts;
}

// The curve of label 0, without its sample in the legend.
std::vector<RecordingCanvas::Line> first_curve(const RecordingCanvas& canvas) {
  auto lines = canvas.curves(curve_style(0).colour);
  lines.erase(lines.begin());
  return lines;
}

TEST(Chart, PutsPointsWhereTheAxesSay) {
  const std::vector<Point> points = {{1, 2.0}, {2, 1.0}, {4, 0.25}};
  const Figure figure = figure_of(points);
  const PanelLayout layout = lay_out(figure).at(0);
  EXPECT_EQ(layout.x.range, (Interval{0, 4})) << "time begins at 0";
  EXPECT_NEAR(layout.y.range.low, 0.25 - 0.05 * 1.75, 1e-12);
  EXPECT_NEAR(layout.y.range.high, 2 + 0.05 * 1.75, 1e-12);
  const auto curve = first_curve(drawn(figure));
  ASSERT_EQ(curve.size(), 1U);
  ASSERT_EQ(curve[0].points.size(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(curve[0].points[i].x, layout.area.left + points[i].x / 4 * layout.area.width, 1e-9);
    const double up = (points[i].y - layout.y.range.low) / layout.y.range.length();
    EXPECT_NEAR(curve[0].points[i].y, layout.area.bottom() - up * layout.area.height, 1e-9);
  }
}

TEST(Chart, NumbersStandAtTheirValues) {
  const Figure figure = figure_of({{0, 0}, {10, 100}});
  const PanelLayout layout = lay_out(figure).at(0);
  int found = 0;
  for (const auto& text : drawn(figure).texts) {
    if (text.style.anchor == TextAnchor::kMiddle && text.text != "epoch") {
      EXPECT_NEAR(text.baseline.x, layout.place({std::stod(text.text), 0}).x, 1e-9);
      ++found;
    } else if (text.style.anchor == TextAnchor::kEnd) {
      EXPECT_NEAR(text.baseline.y, layout.place({0, std::stod(text.text)}).y, 6);
      ++found;
    }
  }
  EXPECT_GE(found, 8);
}

TEST(Chart, GapsSplitACurveAndLonelyPointsAreMarked) {
  const auto canvas =
      drawn(figure_of({{0, 1}, {1, 2}, {2, kNan}, {3, 1}, {4, kNan}, {5, 2}, {6, 3}}));
  const auto curve = first_curve(canvas);
  ASSERT_EQ(curve.size(), 3U);
  EXPECT_EQ(curve[0].points.size(), 2U);
  EXPECT_EQ(curve[1].points.size(), 1U);
  EXPECT_EQ(curve[2].points.size(), 2U);
  EXPECT_EQ(canvas.shapes.size(), 5U + 1) << "a marker each, and the legend's";
}

TEST(Chart, ALogarithmicScaleHasNoPlaceForZero) {
  Figure figure = figure_of({{0, 0}, {1, 100}, {2, 10}, {3, 1}});
  figure.panels[0].y_scale = Scale::kLogarithmic;
  const auto curve = first_curve(drawn(figure));
  ASSERT_EQ(curve.size(), 1U);
  ASSERT_EQ(curve[0].points.size(), 3U);
  EXPECT_NEAR(curve[0].points[1].y - curve[0].points[0].y,
              curve[0].points[2].y - curve[0].points[1].y, 1e-9);
}

TEST(Chart, LongCurvesStayShortFilesAndKeepTheirPeaks) {
  std::vector<Point> points;
  for (int i = 0; i < 200000; ++i) {
    points.push_back({i / 1000.0, i == 77777 ? 50 : std::sin(i / 9.0)});
  }
  const Figure figure = figure_of(points);
  const auto curve = first_curve(drawn(figure));
  ASSERT_EQ(curve.size(), 1U);
  EXPECT_LT(curve[0].points.size(), 5000U);
  double highest = 1e9;
  for (const Point& point : curve[0].points) highest = std::min(highest, point.y);
  EXPECT_NEAR(highest, lay_out(figure)[0].place({77.777, 50}).y, 1e-9);
  for (std::size_t i = 1; i < curve[0].points.size(); ++i) {
    ASSERT_LE(curve[0].points[i - 1].x, curve[0].points[i].x);
  }
}

TEST(Chart, EachRunLooksTheSameInEveryPanelAndUnlikeTheOthers) {
  Figure figure{"", {}, {{}, {}}, {900, 400}};
  for (int run = 0; run < 7; ++run) {
    figure.labels.push_back("run " + std::to_string(run));
    for (Panel& panel : figure.panels) {
      panel.curves.push_back({{{0, run + 0.0}, {1, run + 1.0}}, {}});
    }
  }
  const RecordingCanvas canvas = drawn(figure);
  for (std::size_t run = 0; run < 7; ++run) {
    const auto lines = canvas.curves(curve_style(run).colour);
    ASSERT_EQ(lines.size(), 3U) << "the legend and two panels";
    for (const auto& line : lines) EXPECT_EQ(line.stroke.dashes, curve_style(run).dashes);
  }
}

TEST(Chart, StylesDifferAsPromised) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < kDistinctCurves; ++i) {
    const CurveStyle style = curve_style(i);
    std::string text = std::to_string(style.colour.red) + "," + std::to_string(style.colour.green);
    for (const double dash : style.dashes) text += " " + std::to_string(dash);
    seen.insert(text + " " + std::to_string(static_cast<int>(style.marker)));
  }
  EXPECT_EQ(seen.size(), kDistinctCurves);
}

TEST(Chart, LastValuesCanBeReadOneByOne) {
  Figure figure{"", {}, {{}}, {600, 400}};
  for (int run = 0; run < 8; ++run) {
    figure.labels.push_back("run");
    figure.panels[0].curves.push_back({{{0, 0}, {1, 70 + run * 0.01}}, {}});
  }
  std::vector<double> places;
  for (const auto& text : drawn(figure).texts) {
    if (text.style.bold && text.text.starts_with("70.")) places.push_back(text.baseline.y);
  }
  std::sort(places.begin(), places.end());
  EXPECT_EQ(places.size(), 8U);
  for (std::size_t i = 1; i < places.size(); ++i) EXPECT_GE(places[i] - places[i - 1], 12);
}

TEST(Chart, SaysWhenThereIsNothingYet) {
  const auto texts = texts_of(drawn(figure_of({})));
  EXPECT_THAT(texts, testing::Contains("no records yet"));
  EXPECT_THAT(texts, testing::Not(testing::Contains("0.5"))) << "an axis of nothing";
}

TEST(Chart, EverythingStaysOnThePage) {
  for (const std::size_t panels : {1U, 2U, 3U, 4U, 6U, 9U}) {
    Figure figure{std::string(300, 'W'), {}, {}, {}};
    for (int run = 0; run < 12; ++run) figure.labels.push_back(std::string(run * 7 + 1, 'm'));
    for (std::size_t i = 0; i < panels; ++i) {
      figure.panels.push_back({.title = "Title", .x_title = "epoch", .curves = {}});
      for (int run = 0; run < 12; ++run) {
        figure.panels.back().curves.push_back({{{0, 1e6}, {90, 1234567.0 * run}}, {}});
      }
    }
    figure.size = usual_size(figure);
    const RecordingCanvas canvas = drawn(figure);
    for (const auto& line : canvas.lines) {
      for (const Point& point : line.points) {
        ASSERT_TRUE(point.x >= 0 && point.x <= figure.size.width) << point.x;
        ASSERT_TRUE(point.y >= 0 && point.y <= figure.size.height) << point.y;
      }
    }
    for (const auto& text : canvas.texts) {
      ASSERT_TRUE(text.baseline.x >= 0 && text.baseline.x <= figure.size.width) << text.text;
      ASSERT_TRUE(text.baseline.y > 0 && text.baseline.y <= figure.size.height) << text.text;
    }
    const std::vector<PanelLayout> layouts = lay_out(figure);
    for (const PanelLayout& layout : layouts) {
      EXPECT_GT(layout.area.width, 200);
      EXPECT_GT(layout.area.height, 150);
    }
  }
}

TEST(Chart, AbsurdSizesAndValuesDoNotFail) {
  for (const double side : {0.0, 1.0, 30.0, 200.0, 1e5}) {
    Figure figure = figure_of({{0, 1e308}, {1e308, -1e308}, {kNan, kNan}});
    figure.size = {side, side};
    for (const auto& line : drawn(figure).lines) {
      for (const Point& point : line.points) {
        ASSERT_TRUE(std::isfinite(point.x) && std::isfinite(point.y));
      }
    }
  }
  drawn(Figure{});
}

// Falls from 100 to 2 within a twentieth of the course, then slowly to 1.
Figure falling_figure() {
  std::vector<Point> points = {{0, 100}, {2, 50}, {4, 10}};
  for (int i = 10; i <= 100; i += 5) points.push_back({i + 0.0, 2 - i / 100.0});
  Figure figure = figure_of(points);
  figure.panels[0].may_cut_beginning = true;
  return figure;
}

TEST(Chart, LeavesOutABeginningThatDwarfsTheRestAndSaysSo) {
  Figure figure = falling_figure();
  const PanelLayout layout = lay_out(figure).at(0);
  EXPECT_LT(layout.y.range.high, 2.1);
  EXPECT_EQ(layout.cut, 3U);
  const RecordingCanvas canvas = drawn(figure);
  EXPECT_THAT(texts_of(canvas), testing::Contains("3 early points off the axis"));
  const auto curve = first_curve(canvas);
  ASSERT_EQ(curve.size(), 1U);
  for (const Point& point : curve[0].points) EXPECT_GE(point.y, layout.area.top - 1e-9);
  EXPECT_NEAR(curve[0].points[0].y, layout.area.top, 1e-9) << "it comes from the border";
  EXPECT_EQ(curve[0].points.size(), 19U + 1);
  for (const auto& shape : canvas.shapes) {
    for (const Point& corner : shape.corners) EXPECT_GT(corner.y, 20);
  }
  figure.panels[0].may_cut_beginning = false;
  EXPECT_GT(lay_out(figure)[0].y.range.high, 100);
}

TEST(Chart, LeavesNothingOutWhereTheRestIsNotDwarfed) {
  Figure figure = falling_figure();
  figure.panels[0].curves[0].points[10].y = 80;  // a shock later on
  EXPECT_GT(lay_out(figure)[0].y.range.high, 100);
  EXPECT_EQ(lay_out(figure)[0].cut, 0U);
  figure.panels[0].curves[0].points.resize(5);
  EXPECT_EQ(lay_out(figure)[0].cut, 0U) << "too few to judge";
}

TEST(Chart, AHeldValueShowsAlsoWhenItCameEarly) {
  Figure figure = falling_figure();
  figure.labels.push_back("server");
  figure.panels[0].curves.push_back({{{1, 1.5}, {3, 5}}, {}, 100});
  const PanelLayout layout = lay_out(figure).at(0);
  EXPECT_GT(layout.y.range.high, 5) << "5 is in force until the end";
  const auto line = drawn(figure).curves(curve_style(1).colour).at(1).points;
  ASSERT_EQ(line.size(), 4U);
  EXPECT_EQ(line[0].y, line[1].y) << "held until the next";
  EXPECT_EQ(line[1].x, line[2].x);
  EXPECT_NEAR(line[3].x, layout.area.right(), 1e-9);
  EXPECT_EQ(line[3].y, line[2].y);
}

TEST(Chart, ThickCurvesStandBehindThinOnes) {
  Figure figure{"", {"worker", "server"}, {{}}, {600, 400}};
  figure.styles = {worker_style(0), server_style()};
  figure.panels[0].curves = {{{{0, 1}, {1, 2}}, {}}, {{{0, 1}, {1, 3}}, {}}};
  const RecordingCanvas canvas = drawn(figure);
  std::vector<double> widths;
  for (const auto& line : canvas.lines) {
    if (line.stroke.width > 1) widths.push_back(line.stroke.width);
  }
  ASSERT_EQ(widths.size(), 4U) << "the legend and the curves";
  EXPECT_GT(widths[2], widths[3]);
}

TEST(Chart, PanelsAboveOneAnotherShareTheirCourse) {
  Figure figure = figure_of({{0, 1}, {50, 2}});
  figure.panels.push_back(figure.panels[0]);
  figure.panels[1].curves[0].points.push_back({100, 3});
  figure.columns = 1;
  figure.size = usual_size(figure);
  const auto layouts = lay_out(figure);
  EXPECT_EQ(layouts[0].x.range, layouts[1].x.range);
  EXPECT_EQ(layouts[0].area.left, layouts[1].area.left);
  EXPECT_EQ(layouts[0].area.width, layouts[1].area.width);
  EXPECT_GT(layouts[1].area.top, layouts[0].area.bottom());
  const auto texts = texts_of(drawn(figure));
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "epoch"), 1);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "20"), 1);
}

}  // namespace
}  // namespace cohort::report
