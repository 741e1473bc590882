#include "report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "report/chart_layout.h"
#include "report/text.h"

namespace cohort::report {
namespace {

using detail::kTextGap;
using detail::kTickSize;

constexpr Colour kAxisLine = {140, 140, 140};
constexpr Colour kGridLine = {228, 228, 228};
constexpr double kMarkerRadius = 3.6;
constexpr double kMarkersACurve = 12;

// Lines one unit wide are sharp when they stand between units.
double sharp(double place) { return std::floor(place) + 0.5; }

// One part of a curve without gaps, in places.
using Part = std::vector<Point>;

std::vector<Part> parts_of(const Panel& panel, const PanelLayout& layout,
                           const std::vector<Point>& points) {
  std::vector<Part> parts(1);
  for (const Point& point : points) {
    if (detail::has_place(panel, point)) {
      parts.back().push_back(layout.place(point));
    } else if (!parts.back().empty()) {
      parts.emplace_back();
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// The corners of the steps through the points, up to the place that `until` has.
std::vector<Part> held(std::vector<Part> parts, double until) {
  for (Part& part : parts) {
    Part steps;
    for (const Point& point : part) {
      if (!steps.empty()) steps.push_back({point.x, steps.back().y});
      steps.push_back(point);
    }
    part = std::move(steps);
  }
  if (!parts.empty() && parts.back().back().x < until) {
    parts.back().push_back({until, parts.back().back().y});
  }
  return parts;
}

// What of the parts lies between the area's top and bottom.
std::vector<Part> within(const std::vector<Part>& parts, const Rectangle& area) {
  const auto is_inside = [&](const Point& point) {
    return point.y >= area.top && point.y <= area.bottom();
  };
  const auto crossing = [](const Point& a, const Point& b, double y) {
    return Point{a.x + (b.x - a.x) * (y - a.y) / (b.y - a.y), y};
  };
  std::vector<Part> kept;
  for (const Part& part : parts) {
    bool open = false;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const bool inside = is_inside(part[i]);
      if (i > 0 && part[i - 1].y != part[i].y) {
        Part borders;
        for (const double y : {area.top, area.bottom()}) {
          if ((part[i - 1].y < y) != (part[i].y < y)) {
            borders.push_back(crossing(part[i - 1], part[i], y));
          }
        }
        if (part[i - 1].y > part[i].y) std::reverse(borders.begin(), borders.end());
        for (const Point& border : borders) {
          if (!open) kept.emplace_back();
          kept.back().push_back(border);
          open = !open;
        }
      }
      if (!inside) continue;
      if (!open) kept.emplace_back();
      open = true;
      kept.back().push_back(part[i]);
    }
  }
  return kept;
}

// What is left of a part when no half unit of x keeps more than its first, lowest, highest and last
// point: it looks the same, and the file of a long run stays small.
Part thinned(const Part& part) {
  Part kept;
  for (auto begin = part.begin(); begin != part.end();) {
    const double column = std::floor(begin->x * 2);
    const auto end = std::find_if(
        begin, part.end(), [&](const Point& point) { return std::floor(point.x * 2) != column; });
    if (end - begin <= 4) {
      kept.insert(kept.end(), begin, end);
    } else {
      auto [low, high] =
          std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
      if (high < low) std::swap(low, high);
      for (const auto& each : {begin, low, high, end - 1}) {
        if (kept.empty() || !(kept.back() == *each)) kept.push_back(*each);
      }
    }
    begin = end;
  }
  return kept;
}

void draw_marker(Canvas& canvas, const CurveStyle& style, Point centre) {
  canvas.polygon(marker_shape(style.marker, centre, kMarkerRadius), style.colour,
                 {kWhite, 1, 1, {}});
}

// Markers where few points make a curve; along a dense one every so often, each curve beginning
// elsewhere so that markers of curves that run together stay apart.
void draw_markers(Canvas& canvas, const std::vector<Part>& parts, const CurveStyle& style,
                  std::size_t number, const Rectangle& area) {
  const double spacing = area.width / kMarkersACurve;
  std::size_t count = 0;
  for (const Part& part : parts) count += part.size();
  const bool dense = static_cast<double>(count) > 1.5 * kMarkersACurve;
  double next = area.left - 1;
  if (dense) next = area.left + spacing * (0.4 + 0.25 * static_cast<double>(number % 4));
  for (const Part& part : parts) {
    for (const Point& point : part) {
      if (part.size() > 1 && point.x < next) continue;
      if (point.y < area.top || point.y > area.bottom()) continue;
      draw_marker(canvas, style, point);
      if (dense) next = std::max(next, point.x - spacing / 2) + spacing;
    }
  }
}

void draw_axes(Canvas& canvas, const Panel& panel, const PanelLayout& layout) {
  const Rectangle& area = layout.area;
  for (const Tick& tick : layout.y.ticks) {
    const double y = area.bottom() - layout.y.share(tick.value) * area.height;
    draw_line(canvas, {area.left, sharp(y)}, {area.right(), sharp(y)}, {kGridLine, 1, 1, {}});
    canvas.text({area.left - kTextGap, y + kTickSize * 0.36}, tick.text,
                {kTickSize, kQuiet, false, TextAnchor::kEnd});
  }
  const double bottom = sharp(area.bottom());
  for (const Tick& tick : layout.x.ticks) {
    const double x = area.left + layout.x.share(tick.value) * area.width;
    draw_line(canvas, {sharp(x), bottom}, {sharp(x), bottom + 4}, {kAxisLine, 1, 1, {}});
    if (!layout.has_x_numbers) continue;
    canvas.text({x, area.bottom() + 17}, tick.text,
                {kTickSize, kQuiet, false, TextAnchor::kMiddle});
  }
  draw_line(canvas, {area.left, bottom}, {area.right(), bottom}, {kAxisLine, 1, 1, {}});
  if (!layout.has_x_numbers) return;
  canvas.text({area.left + area.width / 2, area.bottom() + 34}, panel.x_title,
              {kTickSize + 0.5, kQuiet, false, TextAnchor::kMiddle});
}

struct LastValue {
  double y = 0;  // where the curve ends; then where the text stands
  std::string text;
  Colour colour;
};

// Moves the values apart so that each can be read, in the order of their curves' ends.
void spread(std::vector<LastValue>& values, const Rectangle& area) {
  const double height = kTickSize + 2;
  std::stable_sort(values.begin(), values.end(),
                   [](const LastValue& a, const LastValue& b) { return a.y < b.y; });
  for (std::size_t i = 1; i < values.size(); ++i) {
    values[i].y = std::max(values[i].y, values[i - 1].y + height);
  }
  double lowest = area.bottom();
  for (auto value = values.rbegin(); value != values.rend(); ++value) {
    value->y = std::min(value->y, lowest);
    lowest = value->y - height;
  }
}

void draw_last_values(Canvas& canvas, const Figure& figure, const Panel& panel,
                      const PanelLayout& layout) {
  std::vector<LastValue> values;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const std::vector<Part> parts = parts_of(panel, layout, panel.curves[i].points);
    if (parts.empty()) continue;
    values.push_back({parts.back().back().y, detail::last_value_text(panel, panel.curves[i]),
                      figure.style(i).colour});
  }
  if (static_cast<double>(values.size()) * (kTickSize + 2) > layout.area.height) return;
  spread(values, layout.area);
  for (const LastValue& value : values) {
    canvas.text({layout.area.right() + 1.5 * kTextGap, value.y + kTickSize * 0.36}, value.text,
                {kTickSize, value.colour, true, TextAnchor::kStart});
  }
}

// The most that fits beside the panel's title.
std::string cut_text(const Panel& panel, const PanelLayout& layout) {
  const std::string count = std::to_string(layout.cut);
  const double room = layout.area.right() - layout.title_baseline.x -
                      text_width(panel.title, detail::kPanelTitleSize, true) - 2 * kTextGap;
  for (const std::string& text :
       {count + (layout.cut == 1 ? " early point off the axis" : " early points off the axis"),
        count + " early off the axis"}) {
    if (text_width(text, kTickSize) <= room) return text;
  }
  return "+ " + count + " early";
}

// Behind the thin ones the thick, which still show where they coincide.
std::vector<std::size_t> drawing_order(const Figure& figure, const Panel& panel) {
  std::vector<std::size_t> order(panel.curves.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return figure.style(a).width > figure.style(b).width;
  });
  return order;
}

void draw_curve(Canvas& canvas, const Figure& figure, const Panel& panel, const PanelLayout& layout,
                std::size_t number) {
  const Curve& curve = panel.curves[number];
  const CurveStyle style = figure.style(number);
  const std::vector<Part> points = parts_of(panel, layout, curve.points);
  std::vector<Part> lines = points;
  if (curve.held_until) {
    lines = held(std::move(lines), layout.place({*curve.held_until, layout.y.range.low}).x);
  }
  if (panel.may_cut_beginning) lines = within(lines, layout.area);
  for (const Part& part : lines) {
    canvas.polyline(thinned(part), {style.colour, style.width, 1, style.dashes});
  }
  draw_markers(canvas, points, style, number, layout.area);
}

void draw_panel(Canvas& canvas, const Figure& figure, const Panel& panel,
                const PanelLayout& layout) {
  const Rectangle& area = layout.area;
  canvas.text(layout.title_baseline, panel.title,
              {detail::kPanelTitleSize, kInk, true, TextAnchor::kStart});
  if (layout.cut > 0) {
    canvas.text({area.right(), layout.title_baseline.y}, cut_text(panel, layout),
                {kTickSize, kQuiet, false, TextAnchor::kEnd});
  }
  draw_axes(canvas, panel, layout);
  if (!detail::has_values(panel)) {
    canvas.text({area.left + area.width / 2, area.top + area.height / 2}, "no records yet",
                {detail::kPanelTitleSize, kQuiet, false, TextAnchor::kMiddle});
    return;
  }
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    std::vector<Part> parts = parts_of(panel, layout, panel.curves[i].faint);
    if (panel.may_cut_beginning) parts = within(parts, area);
    for (const Part& part : parts) {
      canvas.polyline(thinned(part), {figure.style(i).colour, 1, 0.3, {}});
    }
  }
  // The first one is a whole line and the next are dashed: where they coincide, both show.
  for (const std::size_t number : drawing_order(figure, panel)) {
    draw_curve(canvas, figure, panel, layout, number);
  }
  draw_last_values(canvas, figure, panel, layout);
}

void draw_legend(Canvas& canvas, const Figure& figure, const detail::PageLayout& page) {
  for (const detail::LegendEntry& entry : page.legend) {
    const CurveStyle style = figure.style(entry.number);
    const Point left = entry.left;
    const Point right = {left.x + detail::kLegendSample, left.y};
    draw_line(canvas, left, right, {style.colour, style.width, 1, style.dashes});
    draw_marker(canvas, style, {(left.x + right.x) / 2, left.y});
    canvas.text({right.x + kTextGap, left.y + detail::kLegendSize * 0.36}, entry.text,
                {detail::kLegendSize, kInk, false, TextAnchor::kStart});
  }
}

}  // namespace

void draw(const Figure& figure, Canvas& canvas) {
  const detail::PageLayout page = detail::lay_out_page(figure);
  if (!page.title.empty()) {
    canvas.text(page.title_baseline, page.title,
                {detail::title_size(figure), kInk, true, TextAnchor::kStart});
  }
  draw_legend(canvas, figure, page);
  const std::vector<PanelLayout> layouts = lay_out(figure);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    draw_panel(canvas, figure, figure.panels[i], layouts[i]);
  }
}

}  // namespace cohort::report
