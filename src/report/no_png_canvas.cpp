#include "core/error.h"
#include "report/png_canvas.h"

namespace cohort {

bool can_draw_png() { return false; }

std::string png_picture(Size, double, const Drawing&) {
  throw ConfigError(
      "this build cannot draw PNG files: it was made without Cairo. Ask for an .svg file, or "
      "install libcairo2-dev and build again");
}

}  // namespace cohort
