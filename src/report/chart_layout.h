// The places of what stands around the panels, shared by the files of the chart.
#pragma once

#include <string>
#include <vector>

#include "report/chart.h"

namespace cohort::report::detail {

struct LegendEntry {
  std::size_t number = 0;  // of the label and its curves
  Point left;              // of the line that shows the style; the text follows it
  std::string text;
};

struct PageLayout {
  std::string title;  // as much of it as fits
  Point title_baseline;
  std::vector<LegendEntry> legend;
  Rectangle panels;  // what is left for them
};

PageLayout lay_out_page(const Figure& figure);

// The size of the figure's title.
double title_size(const Figure& figure);

// The value written at the end of each curve: its last one that has a place, or "".
std::string last_value_text(const Panel& panel, const Curve& curve);

// Whether any point of the panel's curves has a place.
bool has_values(const Panel& panel);

bool has_place(const Panel& panel, const Point& value);

inline constexpr double kLegendSize = 12.5;
inline constexpr double kLegendSample = 34;  // length of the line that shows the style
inline constexpr double kPanelTitleSize = 13;
inline constexpr double kTickSize = 11;
inline constexpr double kTextGap = 8;  // between text and what it belongs to

}  // namespace cohort::report::detail
