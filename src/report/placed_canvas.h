// A part of a canvas as a canvas of its own: moved and scaled.
#pragma once

#include "report/canvas.h"

namespace cohort::report {

// What is drawn at (x, y) appears at origin + scale * (x, y) of `target`, which must outlive it.
class PlacedCanvas final : public Canvas {
 public:
  PlacedCanvas(Canvas& target, Point origin, double scale)
      : target_(target), origin_(origin), scale_(scale) {}

  void rectangle(const Rectangle& area, Colour fill) override;
  void polyline(std::span<const Point> points, const Stroke& stroke) override;
  void polygon(std::span<const Point> corners, Colour fill, const Stroke& outline) override;
  void text(Point baseline, std::string_view text, const TextStyle& style) override;

 private:
  Point placed(Point point) const;
  std::vector<Point> placed(std::span<const Point> points) const;
  Stroke placed(Stroke stroke) const;

  Canvas& target_;
  Point origin_;
  double scale_;
};

}  // namespace cohort::report
