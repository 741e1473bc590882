#include "report/png_canvas.h"

#include <cmath>

#include "core/error.h"
#include "report/cairo_canvas.h"

namespace cohort::report {

bool can_draw_png() { return true; }

std::string png_picture(Size size, double pixels_per_unit, const Drawing& drawing) {
  const double width = std::round(size.width * pixels_per_unit);
  const double height = std::round(size.height * pixels_per_unit);
  constexpr double kMaxPixelsASide = 32767;  // Cairo's own limit
  if (!(width >= 1 && height >= 1 && width <= kMaxPixelsASide && height <= kMaxPixelsASide &&
        width * height <= kMaxPixels)) {
    throw ConfigError("a PNG of " + std::to_string(static_cast<long long>(width)) + " x " +
                      std::to_string(static_cast<long long>(height)) +
                      " pixels cannot be drawn: make it 1 to 32767 pixels a side, 100 million in "
                      "all");
  }
  const detail::CairoSurface surface(cairo_image_surface_create(
      CAIRO_FORMAT_RGB24, static_cast<int>(width), static_cast<int>(height)));
  detail::CairoCanvas canvas(surface.get(), pixels_per_unit);
  canvas.rectangle({0, 0, width / pixels_per_unit, height / pixels_per_unit}, {255, 255, 255});
  drawing(canvas);
  canvas.check();
  cairo_surface_flush(surface.get());
  std::string content;
  detail::check_cairo(
      cairo_surface_write_to_png_stream(surface.get(), detail::append_to_string, &content));
  return content;
}

}  // namespace cohort::report
