// How the curves of one chart are told apart.
#pragma once

#include <cstddef>
#include <vector>

#include "report/canvas.h"

namespace cohort::report {

enum class Marker { kCircle, kSquare, kTriangle, kDiamond, kTriangleDown, kPentagon };

// A colour that people with any of the usual colour deficiencies can tell from the others (Okabe
// and Ito 2008, without its yellow, which is too light for lines on white), and for print in black
// and white a pattern of dashes and a marker.
struct CurveStyle {
  Colour colour;
  std::vector<double> dashes;
  Marker marker = Marker::kCircle;
  double width = 2;
};

// The style of the curve with that number, from 0. The first kDistinctCurves differ from one
// another; the first five differ in each of the three.
CurveStyle curve_style(std::size_t number);

// Of one worker among others and a server: as above, without the dark one that server_style() has.
CurveStyle worker_style(std::size_t number);

// Thick and dark: it stands out, also behind the curves of many workers.
CurveStyle server_style();

inline constexpr std::size_t kDistinctCurves = 210;  // 7 colours, 5 patterns, 6 markers

// The corners of a marker around `centre`; all kinds look about equally large.
std::vector<Point> marker_shape(Marker marker, Point centre, double radius);

}  // namespace cohort::report
