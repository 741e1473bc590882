#include "report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/chart_layout.h"
#include "report/curve_style.h"

namespace cohort {
namespace {

using detail::kTextGap;
using detail::kTickSize;

constexpr Colour kInk = {34, 34, 34};
constexpr Colour kQuiet = {100, 100, 100};
constexpr Colour kAxisLine = {140, 140, 140};
constexpr Colour kGridLine = {228, 228, 228};
constexpr Colour kWhite = {255, 255, 255};
constexpr double kLineWidth = 2;
constexpr double kMarkerRadius = 3.6;
constexpr double kMarkersACurve = 12;

// Lines one unit wide are sharp when they stand between units.
double sharp(double place) { return std::floor(place) + 0.5; }

void draw_line(Canvas& canvas, Point from, Point to, const Stroke& stroke) {
  const std::array<Point, 2> ends = {from, to};
  canvas.polyline(ends, stroke);
}

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
void draw_markers(Canvas& canvas, const std::vector<Part>& parts, std::size_t number,
                  const Rectangle& area) {
  const CurveStyle style = curve_style(number);
  const double spacing = area.width / kMarkersACurve;
  std::size_t count = 0;
  for (const Part& part : parts) count += part.size();
  const bool dense = static_cast<double>(count) > 1.5 * kMarkersACurve;
  double next = area.left - 1;
  if (dense) next = area.left + spacing * (0.4 + 0.25 * static_cast<double>(number % 4));
  for (const Part& part : parts) {
    for (const Point& point : part) {
      if (part.size() > 1 && point.x < next) continue;
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
    canvas.text({x, area.bottom() + 17}, tick.text,
                {kTickSize, kQuiet, false, TextAnchor::kMiddle});
  }
  draw_line(canvas, {area.left, bottom}, {area.right(), bottom}, {kAxisLine, 1, 1, {}});
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

void draw_last_values(Canvas& canvas, const Panel& panel, const PanelLayout& layout) {
  std::vector<LastValue> values;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const std::vector<Part> parts = parts_of(panel, layout, panel.curves[i].points);
    if (parts.empty()) continue;
    values.push_back({parts.back().back().y, detail::last_value_text(panel, panel.curves[i]),
                      curve_style(i).colour});
  }
  if (static_cast<double>(values.size()) * (kTickSize + 2) > layout.area.height) return;
  spread(values, layout.area);
  for (const LastValue& value : values) {
    canvas.text({layout.area.right() + 1.5 * kTextGap, value.y + kTickSize * 0.36}, value.text,
                {kTickSize, value.colour, true, TextAnchor::kStart});
  }
}

void draw_panel(Canvas& canvas, const Panel& panel, const PanelLayout& layout) {
  const Rectangle& area = layout.area;
  canvas.text(layout.title_baseline, panel.title,
              {detail::kPanelTitleSize, kInk, true, TextAnchor::kStart});
  draw_axes(canvas, panel, layout);
  if (!detail::has_values(panel)) {
    canvas.text({area.left + area.width / 2, area.top + area.height / 2}, "no records yet",
                {detail::kPanelTitleSize, kQuiet, false, TextAnchor::kMiddle});
    return;
  }
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    for (const Part& part : parts_of(panel, layout, panel.curves[i].faint)) {
      canvas.polyline(thinned(part), {curve_style(i).colour, 1, 0.3, {}});
    }
  }
  // The first one is a whole line and the next are dashed: where they coincide, both show.
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const std::vector<Part> parts = parts_of(panel, layout, panel.curves[i].points);
    const CurveStyle style = curve_style(i);
    for (const Part& part : parts) {
      canvas.polyline(thinned(part), {style.colour, kLineWidth, 1, style.dashes});
    }
    draw_markers(canvas, parts, i, area);
  }
  draw_last_values(canvas, panel, layout);
}

void draw_legend(Canvas& canvas, const detail::PageLayout& page) {
  for (const detail::LegendEntry& entry : page.legend) {
    const CurveStyle style = curve_style(entry.number);
    const Point left = entry.left;
    const Point right = {left.x + detail::kLegendSample, left.y};
    draw_line(canvas, left, right, {style.colour, kLineWidth, 1, style.dashes});
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
                {detail::kTitleSize, kInk, true, TextAnchor::kStart});
  }
  draw_legend(canvas, page);
  const std::vector<PanelLayout> layouts = lay_out(figure);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    draw_panel(canvas, figure.panels[i], layouts[i]);
  }
}

}  // namespace cohort
