// Reports and collections of figures as files. Files are replaced as a whole.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/chart.h"
#include "report/run_report.h"

namespace cohort::report {

// Throws ConfigError when write_report() could not serve the path: its name ends neither in .pdf
// nor in .html, or in .pdf and this build cannot draw that; FileError when its folder does not
// exist or it is a folder itself.
void check_report_path(const std::filesystem::path& path);

// Writes the report in the format that the path's ending names. Throws as check_report_path() does,
// and FileError when the file cannot be written.
void write_report(const Report& report, const std::filesystem::path& path);

// The figures as pictures on pages of A4 without margins, two a row in their order, as the Swamp
// experiment's metrics.pdf has them. Throws ConfigError when there is none, when the path does not
// end in .pdf or this build cannot draw that; FileError as above.
void write_figures_pdf(const std::vector<Figure>& figures, const std::filesystem::path& path,
                       const std::string& title);

}  // namespace cohort::report
