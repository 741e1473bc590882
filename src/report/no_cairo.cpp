#include "core/error.h"
#include "report/pdf_document.h"
#include "report/png_canvas.h"

namespace cohort::report {

bool can_draw_png() { return false; }
bool can_draw_pdf() { return false; }

std::string png_picture(Size, double, const Drawing&) {
  throw ConfigError(
      "this build cannot draw PNG files: it was made without Cairo. Ask for an .svg file, or "
      "install libcairo2-dev and build again");
}

std::string pdf_document(Size, const std::vector<Drawing>&, std::string_view, std::string_view) {
  throw ConfigError(
      "this build cannot write PDF files: it was made without Cairo. Ask for an .html file, or "
      "install libcairo2-dev and build again");
}

}  // namespace cohort::report
