// A report as pages of A4, in the order of the structure.
#pragma once

#include <vector>

#include "report/canvas.h"
#include "report/run_report.h"

namespace cohort::report {

std::vector<Drawing> report_pages(const Report& report);

}  // namespace cohort::report
