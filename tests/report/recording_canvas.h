// A canvas that remembers what was drawn.
#pragma once

#include <string>
#include <vector>

#include "report/canvas.h"

namespace cohort::report {

class RecordingCanvas final : public Canvas {
 public:
  struct Line {
    std::vector<Point> points;
    Stroke stroke;
  };
  struct Shape {
    std::vector<Point> corners;
    Colour fill;
  };
  struct Text {
    Point baseline;
    std::string text;
    TextStyle style;
  };

  void rectangle(const Rectangle&, Colour) override {}
  void polyline(std::span<const Point> points, const Stroke& stroke) override {
    lines.push_back({{points.begin(), points.end()}, stroke});
  }
  void polygon(std::span<const Point> corners, Colour fill, const Stroke&) override {
    shapes.push_back({{corners.begin(), corners.end()}, fill});
  }
  void text(Point baseline, std::string_view text, const TextStyle& style) override {
    texts.push_back({baseline, std::string(text), style});
  }

  // Lines of curves in that colour: those of grids are thinner.
  std::vector<Line> curves(Colour colour) const {
    std::vector<Line> found;
    for (const Line& line : lines) {
      if (line.stroke.colour == colour && line.stroke.width > 1) found.push_back(line);
    }
    return found;
  }

  std::vector<Line> lines;
  std::vector<Shape> shapes;
  std::vector<Text> texts;
};

}  // namespace cohort::report
