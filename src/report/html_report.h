// A report as one HTML page.
#pragma once

#include <string>

#include "report/run_report.h"

namespace cohort::report {

// The whole file: UTF-8, no scripts, nothing from outside, whatever the texts hold. Figures are
// SVG within it. Readable on dark screens and in print.
std::string html_report(const Report& report);

}  // namespace cohort::report
