#include "report/curve_style.h"

#include <array>
#include <cmath>
#include <numbers>

namespace cohort::report {
namespace {

constexpr std::array<Colour, 7> kColours = {{{0, 114, 178},    // blue
                                             {213, 94, 0},     // vermilion
                                             {0, 158, 115},    // bluish green
                                             {204, 121, 167},  // reddish purple
                                             {86, 180, 233},   // sky blue
                                             {230, 159, 0},    // orange
                                             {70, 70, 70}}};   // nearly black

const std::array<std::vector<double>, 5>& patterns() {
  // Ends are round and add the line's width to each dash.
  static const std::array<std::vector<double>, 5> all = {
      {{}, {7, 4.5}, {1, 4}, {9, 4.5, 1, 4.5}, {13, 5}}};
  return all;
}

constexpr std::array<Marker, 6> kMarkers = {Marker::kCircle,       Marker::kSquare,
                                            Marker::kTriangle,     Marker::kDiamond,
                                            Marker::kTriangleDown, Marker::kPentagon};

std::vector<Point> regular(Point centre, double radius, int corners, double turned) {
  std::vector<Point> points;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2 * std::numbers::pi * i / corners + turned;
    points.push_back({centre.x + radius * std::sin(angle), centre.y - radius * std::cos(angle)});
  }
  return points;
}

}  // namespace

CurveStyle curve_style(std::size_t number) {
  return {kColours[number % kColours.size()], patterns()[number % patterns().size()],
          kMarkers[number % kMarkers.size()], 2};
}

CurveStyle worker_style(std::size_t number) {
  constexpr std::size_t kColourful = kColours.size() - 1;
  CurveStyle style = curve_style(number);
  style.colour = kColours[number % kColourful];
  style.width = 1.7;
  return style;
}

CurveStyle server_style() { return {{25, 25, 25}, {}, Marker::kDiamond, 3.6}; }

std::vector<Point> marker_shape(Marker marker, Point centre, double radius) {
  constexpr double kHalfTurn = std::numbers::pi;
  switch (marker) {
    case Marker::kCircle:
      return regular(centre, radius, 20, 0);
    case Marker::kSquare:
      return regular(centre, 1.27 * radius, 4, kHalfTurn / 4);
    case Marker::kTriangle:
      return regular(centre, 1.4 * radius, 3, 0);
    case Marker::kDiamond:
      return regular(centre, 1.4 * radius, 4, 0);
    case Marker::kTriangleDown:
      return regular(centre, 1.4 * radius, 3, kHalfTurn);
    case Marker::kPentagon:
      return regular(centre, 1.15 * radius, 5, 0);
  }
  return {};
}

}  // namespace cohort::report
