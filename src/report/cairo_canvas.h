// What PNG and PDF files have in common: drawing with Cairo. Only in builds that have it.
#pragma once

#include <cairo.h>

#include <memory>
#include <string>

#include "report/canvas.h"

namespace cohort::report::detail {

struct CairoDestroy {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};
using CairoSurface = std::unique_ptr<cairo_surface_t, CairoDestroy>;

// Throws RunError unless the status is that of success.
void check_cairo(cairo_status_t status);

// For cairo_..._stream functions: appends to the std::string that `target` points to.
cairo_status_t append_to_string(void* target, const unsigned char* data, unsigned length);

// Draws on the surface, which must outlive it, with `scale` of its units for each of ours.
class CairoCanvas final : public Canvas {
 public:
  CairoCanvas(cairo_surface_t* surface, double scale);

  void rectangle(const Rectangle& area, Colour fill) override;
  void polyline(std::span<const Point> points, const Stroke& stroke) override;
  void polygon(std::span<const Point> corners, Colour fill, const Stroke& outline) override;
  void text(Point baseline, std::string_view text, const TextStyle& style) override;

  // Ends the page, for surfaces that have several.
  void next_page();

  // Throws RunError when anything drawn so far has failed.
  void check() const;

 private:
  void source(Colour colour, double opacity);
  void path(std::span<const Point> points);
  void draw_line(const Stroke& stroke);

  std::unique_ptr<cairo_t, CairoDestroy> context_;
};

}  // namespace cohort::report::detail
