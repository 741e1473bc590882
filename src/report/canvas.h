// Where a picture is drawn: the seam between charts and file formats.
//
// Coordinates are in units of 1/96 inch (CSS pixels) from the upper left corner, x to the right and
// y downwards. Later calls cover earlier ones. A canvas belongs to one thread. Text may hold any
// bytes: each canvas makes it presentable first (report/text.h). Sizes of text are not asked of a
// canvas: the layout must not depend on the format, so charts use text_width() of report/text.h.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace cohort::report {

struct Point {
  double x = 0;
  double y = 0;

  friend bool operator==(const Point&, const Point&) = default;
};

struct Size {
  double width = 0;
  double height = 0;
};

struct Rectangle {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  friend bool operator==(const Colour&, const Colour&) = default;
};

inline constexpr Colour kInk = {34, 34, 34};
inline constexpr Colour kQuiet = {100, 100, 100};  // of what stands beside the data
inline constexpr Colour kWhite = {255, 255, 255};

struct Stroke {
  Colour colour;
  double width = 1;
  double opacity = 1;          // 0 invisible, 1 solid
  std::vector<double> dashes;  // lengths drawn and left out in turn; empty: a whole line
};

enum class TextAnchor { kStart, kMiddle, kEnd };

struct TextStyle {
  double size = 12;  // of the em square
  Colour colour;
  bool bold = false;
  TextAnchor anchor = TextAnchor::kStart;  // which part of the text stands at the given x
  bool monospace = false;
};

class Canvas {
 public:
  virtual ~Canvas() = default;

  virtual void rectangle(const Rectangle& area, Colour fill) = 0;

  // Joins the points with straight lines whose ends and corners are round. Fewer than two points
  // draw nothing.
  virtual void polyline(std::span<const Point> points, const Stroke& stroke) = 0;

  // A filled, closed shape with an outline of `outline.width`, none when that is 0.
  virtual void polygon(std::span<const Point> corners, Colour fill, const Stroke& outline) = 0;

  // One line of text that stands on `baseline`.
  virtual void text(Point baseline, std::string_view text, const TextStyle& style) = 0;
};

// Something that can be drawn on any canvas.
using Drawing = std::function<void(Canvas&)>;

inline void draw_line(Canvas& canvas, Point from, Point to, const Stroke& stroke) {
  const std::array<Point, 2> ends = {from, to};
  canvas.polyline(ends, stroke);
}

}  // namespace cohort::report
