// Pictures as PNG, drawn by Cairo; a build without it says so.
#pragma once

#include <string>

#include "report/canvas.h"

namespace cohort::report {

// Whether this build can draw PNG files.
bool can_draw_png();

// The whole file: `size` times `pixels_per_unit` pixels, without transparency. Throws ConfigError
// when this build cannot, or when the picture would be larger than kMaxPixels.
std::string png_picture(Size size, double pixels_per_unit, const Drawing& drawing);

inline constexpr double kMaxPixels = 100e6;  // four bytes of memory each

}  // namespace cohort::report
