#include "report/pdf_document.h"

#include <cairo-pdf.h>

#include "report/cairo_canvas.h"
#include "report/text.h"

namespace cohort::report {

bool can_draw_pdf() { return true; }

std::string pdf_document(Size page, const std::vector<Drawing>& pages, std::string_view title,
                         std::string_view created) {
  constexpr double kPointsPerUnit = 72.0 / 96;
  std::string content;
  {
    const detail::CairoSurface surface(cairo_pdf_surface_create_for_stream(
        detail::append_to_string, &content, page.width * kPointsPerUnit,
        page.height * kPointsPerUnit));
    detail::check_cairo(cairo_surface_status(surface.get()));
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE,
                                   presentable(title).c_str());
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATOR, "cohort");
    if (!created.empty()) {
      cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE,
                                     std::string(created).c_str());
    }
    {
      detail::CairoCanvas canvas(surface.get(), kPointsPerUnit);
      for (const Drawing& drawing : pages) {
        drawing(canvas);
        canvas.check();
        canvas.next_page();
      }
      canvas.check();
    }
    cairo_surface_finish(surface.get());
    detail::check_cairo(cairo_surface_status(surface.get()));
  }
  return content;
}

}  // namespace cohort::report
