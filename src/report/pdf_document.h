// Pages as PDF, drawn by Cairo; a build without it says so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/canvas.h"

namespace cohort::report {

// Upright, in the units of a canvas.
inline constexpr Size kA4 = {210 / 25.4 * 96, 297 / 25.4 * 96};

// Whether this build can draw PDF files.
bool can_draw_pdf();

// The whole file: one page of that size for each drawing, lines as lines, text as text in fonts
// that are part of the file. `title` is what a viewer shows; `created` a time such as
// 2025-01-31T12:00:00Z, "" for now. Throws ConfigError when this build cannot.
std::string pdf_document(Size page, const std::vector<Drawing>& pages, std::string_view title,
                         std::string_view created);

}  // namespace cohort::report
