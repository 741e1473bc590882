// Line charts: series of points become a drawing. Pure: no files, no clocks; equal figures give
// equal calls of the canvas.
//
// A figure is a page of panels side by side under one title and one legend. Curve i of every panel
// belongs to label i and is drawn in curve_style(i), so that a run looks the same everywhere.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "report/axis.h"
#include "report/canvas.h"

namespace cohort {

struct Curve {
  std::vector<Point> points;  // values, not places; ascending x. One without a place is a gap.
  std::vector<Point> faint;   // drawn behind, thin and pale: the same before smoothing, or empty
};

struct Panel {
  std::string title;    // what the values are, with their unit
  std::string x_title;  // likewise, below
  Scale x_scale = Scale::kLinear;
  Scale y_scale = Scale::kLinear;
  // Where values cannot be: the axis does not go there to make room.
  Interval y_limits = {-std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::infinity()};
  std::vector<Curve> curves;  // one for each label of the figure; empty where there is none
};

struct Figure {
  std::string title;  // may be empty
  std::vector<std::string> labels;
  std::vector<Panel> panels;
  Size size;
};

// Where a panel's curves stand: at area.left + x.share(value) * area.width, and counted from the
// bottom likewise.
struct PanelLayout {
  Rectangle area;
  Axis x;
  Axis y;
  Point title_baseline;  // where the panel's title begins

  Point place(const Point& value) const;
};

// A size that leaves each panel enough room, whatever the figure's own size.
Size usual_size(const Figure& figure);

// One for each panel, in order, in rows from the upper left. The figure must be at least
// kLeastSide in both directions for it to be readable; smaller ones do not fail.
std::vector<PanelLayout> lay_out(const Figure& figure);

inline constexpr double kLeastSide = 200;

void draw(const Figure& figure, Canvas& canvas);

}  // namespace cohort
