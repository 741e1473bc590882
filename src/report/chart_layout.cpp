#include "report/chart_layout.h"

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace cohort {
namespace {

constexpr double kTitleHeight = 30;
constexpr double kLegendRow = 22;
constexpr double kLegendGap = 24;  // between entries
constexpr double kBelowLegend = 14;
constexpr double kPanelGap = 34;
constexpr double kPanelHeader = 24;  // the panel's title
constexpr double kPanelFooter = 38;  // numbers and title of the x axis
constexpr double kLeastArea = 10;    // keeps the arithmetic sound on absurdly small pages

struct Grid {
  std::size_t columns = 1;
  std::size_t rows = 1;
};

Grid grid_of(std::size_t panels) {
  const std::size_t columns = panels == 0 ? 1 : panels <= 3 ? panels : panels == 4 ? 2 : 3;
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

Axis x_axis(const Panel& panel, double width) {
  Interval range = range_of(values_of(panel, &Point::x), panel.x_scale);
  if (panel.x_scale == Scale::kLinear && range.high > 0) range.low = std::min(range.low, 0.0);
  Axis axis = make_axis(range, panel.x_scale, static_cast<int>(std::clamp(width / 55, 2.0, 12.0)));
  if (!detail::has_values(panel)) axis.ticks.clear();
  return axis;
}

Axis y_axis(const Panel& panel, double height) {
  const Interval range = padded(range_of(values_of(panel, &Point::y), panel.y_scale), 0.05,
                                panel.y_scale, panel.y_limits);
  Axis axis = make_axis(range, panel.y_scale, static_cast<int>(std::clamp(height / 34, 2.0, 10.0)));
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
  return cohort::has_place(value.x, panel.x_scale) && cohort::has_place(value.y, panel.y_scale);
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

PageLayout lay_out_page(const Figure& figure) {
  PageLayout page;
  const double width = std::max(figure.size.width - 2 * kMargin, kLeastArea);
  double top = kMargin;
  if (!figure.title.empty()) {
    page.title = shortened(figure.title, width, kTitleSize, true);
    page.title_baseline = {kMargin, top + kTitleSize * 0.75};
    top += kTitleHeight;
  }
  double left = kMargin;
  for (std::size_t number = 0; number < figure.labels.size(); ++number) {
    const std::string text =
        shortened(figure.labels[number], width - kLegendSample - kTextGap, kLegendSize);
    const double length = kLegendSample + kTextGap + text_width(text, kLegendSize);
    if (left > kMargin && left + length > kMargin + width) {
      left = kMargin;
      top += kLegendRow;
    }
    page.legend.push_back({number, {left, top + kLegendRow / 2 - 4}, text});
    left += length + kLegendGap;
  }
  if (!figure.labels.empty()) top += kLegendRow + kBelowLegend;
  page.panels = {kMargin, top, width, std::max(figure.size.height - top - kMargin, kLeastArea)};
  return page;
}

}  // namespace detail

Point PanelLayout::place(const Point& value) const {
  // Values at the end of what a double holds must not become places no file can express.
  const double across = std::clamp(x.share(value.x), -1.0, 2.0);
  const double up = std::clamp(y.share(value.y), -1.0, 2.0);
  return {area.left + across * area.width, area.bottom() - up * area.height};
}

Size usual_size(const Figure& figure) {
  const Grid grid = grid_of(figure.panels.size());
  const double column = grid.columns == 1 ? 680 : grid.columns == 2 ? 500 : 440;
  const double row = grid.rows == 1 ? 320 : 280;
  const double width = static_cast<double>(grid.columns) * column + 2 * detail::kMargin;
  const Figure without_panels{figure.title, figure.labels, {}, {width, 0}};
  const double header = detail::lay_out_page(without_panels).panels.top;
  return {width, header + static_cast<double>(grid.rows) * row + detail::kMargin};
}

std::vector<PanelLayout> lay_out(const Figure& figure) {
  const Grid grid = grid_of(figure.panels.size());
  const Rectangle page = detail::lay_out_page(figure).panels;
  const auto columns = static_cast<double>(grid.columns);
  const auto rows = static_cast<double>(grid.rows);
  const double width = (page.width - (columns - 1) * kPanelGap) / columns;
  const double height = (page.height - (rows - 1) * kPanelGap / 2) / rows;
  const double area_height = std::max(height - kPanelHeader - kPanelFooter, kLeastArea);

  std::vector<PanelLayout> layouts(figure.panels.size());
  std::vector<double> before(grid.columns, 0);  // room for numbers, the same down a column
  std::vector<double> behind(grid.columns, 0);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    layouts[i].y = y_axis(figure.panels[i], area_height);
    before[i % grid.columns] =
        std::max(before[i % grid.columns], widest_tick(layouts[i].y) + detail::kTextGap);
    behind[i % grid.columns] = std::max(
        behind[i % grid.columns], widest_last_value(figure.panels[i]) + 1.5 * detail::kTextGap);
  }
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const std::size_t column = i % grid.columns;
    const std::size_t row = i / grid.columns;
    const double left = page.left + static_cast<double>(column) * (width + kPanelGap);
    const double top = page.top + static_cast<double>(row) * (height + kPanelGap / 2);
    layouts[i].area = {left + before[column], top + kPanelHeader,
                       std::max(width - before[column] - behind[column], kLeastArea), area_height};
    layouts[i].title_baseline = {left, top + kPanelHeader - 12};
    layouts[i].x = x_axis(figure.panels[i], layouts[i].area.width);
  }
  return layouts;
}

}  // namespace cohort
