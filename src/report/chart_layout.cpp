#include "report/chart_layout.h"

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace cohort::report {
namespace {

// Room around things.
struct Spacing {
  double margin = 22;
  double title_size = 17;
  double title_height = 30;
  double legend_row = 22;
  double legend_gap = 24;  // between entries
  double below_legend = 14;
  double panel_gap = 34;
  double panel_header = 24;  // the panel's title
};

Spacing spacing_of(const Figure& figure) {
  if (!figure.compact) return {};
  return {.margin = 2,
          .title_size = 14,
          .title_height = 23,
          .legend_row = 18,
          .legend_gap = 18,
          .below_legend = 8,
          .panel_gap = 26,
          .panel_header = 20};
}

constexpr double kPanelFooter = 38;  // numbers and title of the x axis
constexpr double kShortFooter = 4;   // without these
constexpr double kLeastArea = 10;    // keeps the arithmetic sound on absurdly small pages

struct Grid {
  std::size_t columns = 1;
  std::size_t rows = 1;
};

Grid grid_of(const Figure& figure) {
  const std::size_t panels = figure.panels.size();
  std::size_t columns = panels == 0 ? 1 : panels <= 3 ? panels : panels == 4 ? 2 : 3;
  if (figure.columns > 0) columns = figure.columns;
  return {columns, (panels + columns - 1) / columns};
}

std::vector<double> values_of(const Panel& panel, double Point::*coordinate) {
  std::vector<double> values;
  for (const Curve& curve : panel.curves) {
    for (const auto* points : {&curve.points, &curve.faint}) {
      for (const Point& point : *points) {
        if (detail::has_place(panel, point)) values.push_back(point.*coordinate);
      }
    }
  }
  return values;
}

std::vector<double> x_values(const Panel& panel) {
  std::vector<double> values = values_of(panel, &Point::x);
  for (const Curve& curve : panel.curves) {
    if (curve.held_until && !curve.points.empty()) values.push_back(*curve.held_until);
  }
  return values;
}

double length_on(const Interval& range, Scale scale) {
  return scale == Scale::kLinear ? range.length() : std::log(range.high) - std::log(range.low);
}

// Of the values that a curve shows beyond the first tenth of the course.
Interval later_range(const Panel& panel, const Interval& all) {
  constexpr double kBeginning = 0.1;
  constexpr std::size_t kLeastValues = 8;  // of fewer, none is left out
  constexpr double kDwarfed = 3;
  const Interval course = range_of(x_values(panel), panel.x_scale);
  const double begin = std::min(course.low, 0.0);
  const double border = begin + kBeginning * (course.high - begin);
  std::vector<double> later;
  for (const Curve& curve : panel.curves) {
    const Point* in_force = nullptr;
    for (const Point& point : curve.points) {
      if (!detail::has_place(panel, point)) continue;
      if (point.x >= border) later.push_back(point.y);
      in_force = &point;
    }
    for (const Point& point : curve.faint) {
      if (detail::has_place(panel, point) && point.x >= border) later.push_back(point.y);
    }
    // A value that is held, and a curve that ends so early, show too.
    if (in_force != nullptr && in_force->x < border) later.push_back(in_force->y);
  }
  if (later.size() < kLeastValues) return all;
  const Interval range = range_of(later, panel.y_scale);
  const bool dwarfed = length_on(all, panel.y_scale) > kDwarfed * length_on(range, panel.y_scale);
  return dwarfed ? range : all;
}

Interval y_range(const Panel& panel) {
  const std::vector<double> values = values_of(panel, &Point::y);
  Interval all = range_of(values, panel.y_scale);
  // The room around a single value is not where values cannot be.
  const Interval& limits = panel.y_limits;
  if (std::all_of(values.begin(), values.end(),
                  [&](double value) { return value >= limits.low && value <= limits.high; })) {
    const Interval inside = {std::max(all.low, limits.low), std::min(all.high, limits.high)};
    if (inside.low < inside.high) all = inside;
  }
  return panel.may_cut_beginning ? later_range(panel, all) : all;
}

// Whether the panels stand above one another over the same course: the last one's numbers do then.
bool has_one_course(const Figure& figure) {
  return figure.columns == 1 &&
         std::all_of(figure.panels.begin(), figure.panels.end(), [&](const Panel& panel) {
           return panel.x_title == figure.panels.front().x_title &&
                  panel.x_scale == figure.panels.front().x_scale && detail::has_values(panel);
         });
}

std::size_t points_outside(const Panel& panel, const Interval& range) {
  std::size_t count = 0;
  for (const Curve& curve : panel.curves) {
    for (const Point& point : curve.points) {
      if (detail::has_place(panel, point) && (point.y < range.low || point.y > range.high)) ++count;
    }
  }
  return count;
}

Axis x_axis(const Panel& panel, const std::vector<double>& values, double width) {
  Interval range = range_of(values, panel.x_scale);
  if (panel.x_scale == Scale::kLinear && range.high > 0) range.low = std::min(range.low, 0.0);
  Axis axis = make_axis(range, panel.x_scale, static_cast<int>(std::clamp(width / 55, 2.0, 12.0)));
  if (!detail::has_values(panel)) axis.ticks.clear();
  return axis;
}

Axis y_axis(const Panel& panel, double height) {
  Interval range = padded(y_range(panel), 0.05, panel.y_scale, panel.y_limits);
  if (panel.from_zero && panel.y_scale == Scale::kLinear && range.high > 0) {
    range.low = std::min(range.low, 0.0);
  }
  Axis axis = make_axis(range, panel.y_scale, static_cast<int>(std::clamp(height / 26, 2.0, 10.0)));
  if (!detail::has_values(panel)) axis.ticks.clear();
  return axis;
}

double widest_tick(const Axis& axis) {
  double widest = 0;
  for (const Tick& tick : axis.ticks) {
    widest = std::max(widest, text_width(tick.text, detail::kTickSize));
  }
  return widest;
}

double widest_last_value(const Panel& panel) {
  double widest = 0;
  for (const Curve& curve : panel.curves) {
    widest = std::max(widest,
                      text_width(detail::last_value_text(panel, curve), detail::kTickSize, true));
  }
  return widest;
}

}  // namespace

namespace detail {

bool has_place(const Panel& panel, const Point& value) {
  return report::has_place(value.x, panel.x_scale) && report::has_place(value.y, panel.y_scale);
}

bool has_values(const Panel& panel) {
  return std::any_of(panel.curves.begin(), panel.curves.end(), [&](const Curve& curve) {
    return std::any_of(curve.points.begin(), curve.points.end(),
                       [&](const Point& point) { return has_place(panel, point); });
  });
}

std::string last_value_text(const Panel& panel, const Curve& curve) {
  const auto last = std::find_if(curve.points.rbegin(), curve.points.rend(),
                                 [&](const Point& point) { return has_place(panel, point); });
  return last == curve.points.rend() ? "" : short_number(last->y);
}

double title_size(const Figure& figure) { return spacing_of(figure).title_size; }

PageLayout lay_out_page(const Figure& figure) {
  PageLayout page;
  const Spacing spacing = spacing_of(figure);
  const double width = std::max(figure.size.width - 2 * spacing.margin, kLeastArea);
  double top = spacing.margin;
  if (!figure.title.empty()) {
    page.title = shortened(figure.title, width, spacing.title_size, true);
    page.title_baseline = {spacing.margin, top + spacing.title_size * 0.75};
    top += spacing.title_height;
  }
  double left = spacing.margin;
  for (std::size_t number = 0; number < figure.labels.size(); ++number) {
    const std::string text =
        shortened(figure.labels[number], width - kLegendSample - kTextGap, kLegendSize);
    const double length = kLegendSample + kTextGap + text_width(text, kLegendSize);
    if (left > spacing.margin && left + length > spacing.margin + width) {
      left = spacing.margin;
      top += spacing.legend_row;
    }
    page.legend.push_back({number, {left, top + spacing.legend_row / 2 - 4}, text});
    left += length + spacing.legend_gap;
  }
  if (!figure.labels.empty()) top += spacing.legend_row + spacing.below_legend;
  page.panels = {spacing.margin, top, width,
                 std::max(figure.size.height - top - spacing.margin, kLeastArea)};
  return page;
}

}  // namespace detail

Point PanelLayout::place(const Point& value) const {
  // Values at the end of what a double holds must not become places no file can express.
  const double across = std::clamp(x.share(value.x), -1.0, 2.0);
  const double up = std::clamp(y.share(value.y), -1.0, 2.0);
  return {area.left + across * area.width, area.bottom() - up * area.height};
}

CurveStyle Figure::style(std::size_t number) const {
  return number < styles.size() ? styles[number] : curve_style(number);
}

Size usual_size(const Figure& figure) {
  const Grid grid = grid_of(figure);
  const bool stacked = grid.columns == 1 && grid.rows > 1;
  const double column = stacked ? 540 : grid.columns == 1 ? 680 : grid.columns == 2 ? 500 : 440;
  const double row = stacked ? 195 : grid.rows == 1 ? 320 : 280;
  const double width = static_cast<double>(grid.columns) * column + 2 * spacing_of(figure).margin;
  return size_of_width(figure, width, row);
}

Size size_of_width(const Figure& figure, double width, double row_height) {
  Figure without_panels;
  without_panels.title = figure.title;
  without_panels.labels = figure.labels;
  without_panels.compact = figure.compact;
  without_panels.size = {width, 0};
  const double header = detail::lay_out_page(without_panels).panels.top;
  const auto rows = static_cast<double>(grid_of(figure).rows);
  return {width, header + rows * row_height + spacing_of(figure).margin};
}

std::vector<PanelLayout> lay_out(const Figure& figure) {
  const Grid grid = grid_of(figure);
  const Spacing spacing = spacing_of(figure);
  const Rectangle page = detail::lay_out_page(figure).panels;
  const auto columns = static_cast<double>(grid.columns);
  const auto rows = static_cast<double>(grid.rows);
  const bool shares_x = has_one_course(figure);
  const double width = (page.width - (columns - 1) * spacing.panel_gap) / columns;
  const double between = spacing.panel_gap / 2;
  const double footers = shares_x ? kPanelFooter + (rows - 1) * kShortFooter : rows * kPanelFooter;
  const double area_height = std::max(
      (page.height - (rows - 1) * between - footers) / rows - spacing.panel_header, kLeastArea);

  std::vector<PanelLayout> layouts(figure.panels.size());
  std::vector<double> before(grid.columns, 0);  // room for numbers, the same down a column
  std::vector<double> behind(grid.columns, 0);
  std::vector<double> all_x;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    layouts[i].y = y_axis(figure.panels[i], area_height);
    before[i % grid.columns] =
        std::max(before[i % grid.columns], widest_tick(layouts[i].y) + detail::kTextGap);
    behind[i % grid.columns] = std::max(
        behind[i % grid.columns], widest_last_value(figure.panels[i]) + 1.5 * detail::kTextGap);
    const std::vector<double> values = x_values(figure.panels[i]);
    all_x.insert(all_x.end(), values.begin(), values.end());
  }
  double top = page.top;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    PanelLayout& layout = layouts[i];
    const Panel& panel = figure.panels[i];
    const std::size_t column = i % grid.columns;
    const double left = page.left + static_cast<double>(column) * (width + spacing.panel_gap);
    layout.area = {left + before[column], top + spacing.panel_header,
                   std::max(width - before[column] - behind[column], kLeastArea), area_height};
    layout.title_baseline = {left, top + spacing.panel_header - 10};
    layout.has_x_numbers = !shares_x || i + 1 == layouts.size();
    if (panel.may_cut_beginning) layout.cut = points_outside(panel, layout.y.range);
    layout.x = x_axis(panel, shares_x ? all_x : x_values(panel), layout.area.width);
    if (column + 1 == grid.columns) {
      top = layout.area.bottom() + (layout.has_x_numbers ? kPanelFooter : kShortFooter) + between;
    }
  }
  return layouts;
}

}  // namespace cohort::report
