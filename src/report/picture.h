// Figures as files.
#pragma once

#include <filesystem>

#include "report/chart.h"

namespace cohort::report {

// Throws ConfigError when write_picture() could not serve the path: its name ends neither in .svg
// nor in .png, or in .png and this build cannot draw that.
void check_picture_path(const std::filesystem::path& path);

// Writes the figure in the format that the path's ending names, replacing the file as a whole. A
// PNG has `pixels_per_unit` pixels for each unit of figure.size. Throws ConfigError as
// check_picture_path() and png_picture() do, FileError when the file cannot be written.
void write_picture(const Figure& figure, const std::filesystem::path& path, double pixels_per_unit);

}  // namespace cohort::report
