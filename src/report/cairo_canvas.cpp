#include "report/cairo_canvas.h"

#include "core/error.h"
#include "report/text.h"

#if defined(__SANITIZE_ADDRESS__)
#define COHORT_FINDS_LEAKS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COHORT_FINDS_LEAKS
#endif
#endif
#ifdef COHORT_FINDS_LEAKS
// Fontconfig keeps its patterns for the life of the process and refers to them by offsets, which
// the search for leaks does not recognise as pointers.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libfontconfig"; }
#endif

namespace cohort::report::detail {

void check_cairo(cairo_status_t status) {
  if (status != CAIRO_STATUS_SUCCESS) {
    throw RunError(std::string("Cairo could not draw the picture: ") +
                   cairo_status_to_string(status));
  }
}

cairo_status_t append_to_string(void* target, const unsigned char* data, unsigned length) {
  try {
    static_cast<std::string*>(target)->append(reinterpret_cast<const char*>(data), length);
  } catch (...) {  // no exception may pass through Cairo
    return CAIRO_STATUS_NO_MEMORY;
  }
  return CAIRO_STATUS_SUCCESS;
}

CairoCanvas::CairoCanvas(cairo_surface_t* surface, double scale) : context_(cairo_create(surface)) {
  check();
  cairo_scale(context_.get(), scale, scale);
  cairo_set_line_cap(context_.get(), CAIRO_LINE_CAP_ROUND);
  cairo_set_line_join(context_.get(), CAIRO_LINE_JOIN_ROUND);
  // Glyphs stand where the layout put them, at any scale.
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_set_font_options(context_.get(), options);
  cairo_font_options_destroy(options);
}

void CairoCanvas::rectangle(const Rectangle& area, Colour fill) {
  cairo_rectangle(context_.get(), area.left, area.top, area.width, area.height);
  source(fill, 1);
  cairo_fill(context_.get());
}

void CairoCanvas::polyline(std::span<const Point> points, const Stroke& stroke) {
  if (points.size() < 2) return;
  path(points);
  draw_line(stroke);
}

void CairoCanvas::polygon(std::span<const Point> corners, Colour fill, const Stroke& outline) {
  path(corners);
  cairo_close_path(context_.get());
  source(fill, 1);
  cairo_fill_preserve(context_.get());
  if (outline.width > 0) draw_line(outline);
  cairo_new_path(context_.get());
}

void CairoCanvas::text(Point baseline, std::string_view text, const TextStyle& style) {
  const std::string shown = presentable(text);
  cairo_select_font_face(context_.get(), style.monospace ? "monospace" : "sans-serif",
                         CAIRO_FONT_SLANT_NORMAL,
                         style.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context_.get(), style.size);
  cairo_text_extents_t extents;
  cairo_text_extents(context_.get(), shown.c_str(), &extents);
  const double before = style.anchor == TextAnchor::kStart    ? 0
                        : style.anchor == TextAnchor::kMiddle ? extents.x_advance / 2
                                                              : extents.x_advance;
  cairo_move_to(context_.get(), baseline.x - before, baseline.y);
  source(style.colour, 1);
  cairo_show_text(context_.get(), shown.c_str());
  cairo_new_path(context_.get());
}

void CairoCanvas::next_page() { cairo_show_page(context_.get()); }

void CairoCanvas::check() const { check_cairo(cairo_status(context_.get())); }

void CairoCanvas::source(Colour colour, double opacity) {
  cairo_set_source_rgba(context_.get(), colour.red / 255.0, colour.green / 255.0,
                        colour.blue / 255.0, opacity);
}

void CairoCanvas::path(std::span<const Point> points) {
  for (const Point& point : points) cairo_line_to(context_.get(), point.x, point.y);
}

void CairoCanvas::draw_line(const Stroke& stroke) {
  source(stroke.colour, stroke.opacity);
  cairo_set_line_width(context_.get(), stroke.width);
  cairo_set_dash(context_.get(), stroke.dashes.data(), static_cast<int>(stroke.dashes.size()), 0);
  cairo_stroke(context_.get());
}

}  // namespace cohort::report::detail
