#include "report/graph_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "report/png_canvas.h"
#include "report/recording_canvas.h"

namespace cohort::report {
namespace {

GraphPicture ring_of(int nodes) {
  GraphPicture picture;
  picture.title = "ring";
  picture.nodes = nodes;
  for (int i = 0; i < nodes; ++i) picture.links.push_back({i, (i + 1) % nodes});
  return picture;
}

RecordingCanvas drawn(const GraphPicture& picture) {
  RecordingCanvas canvas;
  draw(picture, canvas);
  return canvas;
}

double distance(Point a, Point b) { return std::hypot(a.x - b.x, a.y - b.y); }

TEST(NodePlaces, AreInTheUnitSquareAndApart) {
  std::vector<std::pair<int, int>> path;
  for (int i = 1; i < 12; ++i) path.emplace_back(i - 1, i);
  for (const GraphLayout layout :
       {GraphLayout::kCircle, GraphLayout::kGrid, GraphLayout::kWheel, GraphLayout::kFree}) {
    const auto places = node_places(layout, 12, path, 4);
    ASSERT_EQ(places.size(), 12U);
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_GE(places[i].x, -1e-9);
      EXPECT_LE(places[i].x, 1 + 1e-9);
      EXPECT_GE(places[i].y, -1e-9);
      EXPECT_LE(places[i].y, 1 + 1e-9);
      for (std::size_t j = 0; j < i; ++j) EXPECT_GT(distance(places[i], places[j]), 0.05);
    }
    EXPECT_EQ(places, node_places(layout, 12, path, 4)) << "not always the same";
  }
}

TEST(NodePlaces, OfAPathLieFarApartAtItsEndsWhenFree) {
  std::vector<std::pair<int, int>> path;
  for (int i = 1; i < 10; ++i) path.emplace_back(i - 1, i);
  const auto places = node_places(GraphLayout::kFree, 10, path);
  EXPECT_GT(distance(places[0], places[9]), 6 * distance(places[4], places[5]));
}

TEST(NodePlaces, OfOneOrNoneOrSeparateNodesExist) {
  EXPECT_TRUE(node_places(GraphLayout::kFree, 0, {}).empty());
  EXPECT_EQ(node_places(GraphLayout::kWheel, 1, {}), (std::vector<Point>{{0.5, 0.5}}));
  for (const Point& place : node_places(GraphLayout::kFree, 5, {})) {
    EXPECT_TRUE(std::isfinite(place.x) && std::isfinite(place.y));
  }
}

TEST(GraphDrawing, HasALineForEachLinkAndANumberedNodeForEachNode) {
  const auto canvas = drawn(ring_of(8));
  EXPECT_EQ(canvas.lines.size(), 8U);
  EXPECT_EQ(canvas.shapes.size(), 8U);
  ASSERT_EQ(canvas.texts.size(), 9U);
  EXPECT_EQ(canvas.texts[0].text, "ring");
  EXPECT_EQ(canvas.texts[8].text, "7");
}

TEST(GraphDrawing, StaysInsideThePicture) {
  for (const int nodes : {1, 2, 3, 30, 300}) {
    for (const GraphLayout layout :
         {GraphLayout::kCircle, GraphLayout::kGrid, GraphLayout::kWheel, GraphLayout::kFree}) {
      GraphPicture picture = ring_of(nodes);
      if (nodes == 1) picture.links.clear();
      picture.layout = layout;
      picture.columns = 10;
      picture.subtitle = std::string(500, 'w');
      const Size size = graph_size(picture);
      const auto canvas = drawn(picture);
      EXPECT_EQ(static_cast<int>(canvas.shapes.size()), nodes);
      for (const auto& shape : canvas.shapes) {
        for (const Point& corner : shape.corners) {
          EXPECT_TRUE(corner.x > 0 && corner.x < size.width) << nodes << " " << corner.x;
          EXPECT_TRUE(corner.y > 0 && corner.y < size.height) << nodes << " " << corner.y;
        }
      }
      for (const auto& line : canvas.lines) {
        for (const Point& point : line.points) {
          EXPECT_TRUE(point.x > 0 && point.x < size.width && point.y > 0 && point.y < size.height);
        }
      }
    }
  }
}

TEST(GraphDrawing, LeavesAGridOnBothSidesWhereItsBordersMeet) {
  GraphPicture picture;
  picture.nodes = 9;
  picture.layout = GraphLayout::kGrid;
  picture.columns = 3;
  picture.links = {{0, 1}, {0, 2}};  // beside it; around the border
  const auto canvas = drawn(picture);
  ASSERT_EQ(canvas.lines.size(), 3U);
  EXPECT_TRUE(canvas.lines[0].stroke.dashes.empty());
  EXPECT_LT(canvas.lines[1].points[1].x, canvas.lines[0].points[0].x);
  EXPECT_GT(canvas.lines[2].points[1].x, canvas.lines[0].points[1].x);
}

TEST(GraphDrawing, PointsArrowsAtTheReceiver) {
  GraphPicture picture;
  picture.nodes = 2;
  picture.directed = true;
  picture.links = {{0, 1, 0.5, 0}};
  picture.groups = {"step 0"};
  const auto canvas = drawn(picture);
  ASSERT_EQ(canvas.shapes.size(), 3U);  // the arrow's head comes before the nodes
  ASSERT_EQ(canvas.shapes[0].corners.size(), 3U);
  const Point tip = canvas.shapes[0].corners[0];
  // Node 0 stands at the top of the circle, node 1 at the bottom.
  EXPECT_GT(tip.y, canvas.shapes[0].corners[1].y);
  EXPECT_EQ(canvas.texts[1].text, "step 0");
}

TEST(GraphDrawing, DrawsHeavyLinksThicker) {
  GraphPicture picture = ring_of(3);
  picture.links[1].weight = 0.1;
  const auto canvas = drawn(picture);
  EXPECT_GT(canvas.lines[0].stroke.width, 1.5 * canvas.lines[1].stroke.width);
}

TEST(GraphDrawing, IsWrittenInTheFormatOfTheEnding) {
  namespace fs = std::filesystem;
  const fs::path stem =
      fs::path(testing::TempDir()) / ("cohort-graph-" + std::to_string(::getpid()));
  const auto beginning = [](const fs::path& path) {
    std::string text(5, '\0');
    std::ifstream(path).read(text.data(), 5);
    fs::remove(path);
    return text;
  };
  write_graph_picture(ring_of(5), stem.string() + ".svg");
  EXPECT_EQ(beginning(stem.string() + ".svg"), "<?xml");
  if (can_draw_png()) {
    write_graph_picture(ring_of(5), stem.string() + ".PNG");
    EXPECT_EQ(beginning(stem.string() + ".PNG").substr(1, 3), "PNG");
  }
  EXPECT_THROW(write_graph_picture(ring_of(5), stem.string() + ".pdf"), ConfigError);
  EXPECT_THROW(write_graph_picture(ring_of(5), "/nowhere/at/all.svg"), FileError);
}

}  // namespace
}  // namespace cohort::report
