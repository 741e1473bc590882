#include "report/placed_canvas.h"

namespace cohort::report {

void PlacedCanvas::rectangle(const Rectangle& area, Colour fill) {
  const Point corner = placed(Point{area.left, area.top});
  target_.rectangle({corner.x, corner.y, area.width * scale_, area.height * scale_}, fill);
}

void PlacedCanvas::polyline(std::span<const Point> points, const Stroke& stroke) {
  target_.polyline(placed(points), placed(stroke));
}

void PlacedCanvas::polygon(std::span<const Point> corners, Colour fill, const Stroke& outline) {
  target_.polygon(placed(corners), fill, placed(outline));
}

void PlacedCanvas::text(Point baseline, std::string_view text, const TextStyle& style) {
  TextStyle scaled = style;
  scaled.size *= scale_;
  target_.text(placed(baseline), text, scaled);
}

Point PlacedCanvas::placed(Point point) const {
  return {origin_.x + scale_ * point.x, origin_.y + scale_ * point.y};
}

std::vector<Point> PlacedCanvas::placed(std::span<const Point> points) const {
  std::vector<Point> result;
  for (const Point& point : points) result.push_back(placed(point));
  return result;
}

Stroke PlacedCanvas::placed(Stroke stroke) const {
  stroke.width *= scale_;
  for (double& length : stroke.dashes) length *= scale_;
  return stroke;
}

}  // namespace cohort::report
