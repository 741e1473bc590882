// Line charts: series of points become a drawing. Pure: no files, no clocks; equal figures give
// equal calls of the canvas.
//
// A figure is a page of panels side by side under one title and one legend, which stands above them
// and never covers a curve. Curve i of every panel belongs to label i and is drawn in style i, so
// that a run looks the same everywhere; thick curves are drawn behind thin ones.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "report/axis.h"
#include "report/canvas.h"
#include "report/curve_style.h"

namespace cohort::report {

struct Curve {
  std::vector<Point> points;  // values, not places; ascending x. One without a place is a gap.
  std::vector<Point> faint;   // drawn behind, thin and pale: the same before smoothing, or empty
  // Where set, each value holds until the next one, and the last until here: steps, not slopes.
  std::optional<double> held_until = {};
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
  // Lets the axis leave out what only the first tenth of the course shows, where that would press
  // all the rest into a third of the height or less. The panel then says how much is left out.
  bool may_cut_beginning = false;
  bool from_zero = false;  // the vertical axis begins at 0, so that heights compare
};

struct Figure {
  std::string title;  // may be empty
  std::vector<std::string> labels;
  std::vector<Panel> panels;
  Size size;
  std::size_t columns = 0;              // of panels; 0: as many as look well. One: they share x
  std::vector<CurveStyle> styles = {};  // one for each label; empty: curve_style() of its number

  bool compact = false;  // little room around things, none around the figure

  CurveStyle style(std::size_t number) const;
};

// Where a panel's curves stand: at area.left + x.share(value) * area.width, and counted from the
// bottom likewise.
struct PanelLayout {
  Rectangle area;
  Axis x;
  Axis y;
  Point title_baseline;       // where the panel's title begins
  std::size_t cut = 0;        // points that lie outside the area, all at the beginning
  bool has_x_numbers = true;  // or those of the panel below count

  Point place(const Point& value) const;
};

// A size that leaves each panel enough room, whatever the figure's own size.
Size usual_size(const Figure& figure);

// Of that width, with so much for each row of panels: for figures beside one another.
Size size_of_width(const Figure& figure, double width, double row_height);

// One for each panel, in order, in rows from the upper left. The figure must be at least
// kLeastSide in both directions for it to be readable; smaller ones do not fail.
std::vector<PanelLayout> lay_out(const Figure& figure);

inline constexpr double kLeastSide = 200;

void draw(const Figure& figure, Canvas& canvas);

}  // namespace cohort::report
