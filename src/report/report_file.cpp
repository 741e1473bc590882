#include "report/report_file.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/error.h"
#include "core/text.h"
#include "report/html_report.h"
#include "report/pdf_document.h"
#include "report/placed_canvas.h"
#include "report/report_pages.h"
#include "storage/file.h"

namespace cohort::report {
namespace {

namespace fs = std::filesystem;

void check_place(const fs::path& path) {
  std::error_code error;
  const std::string name = path.string();
  if (fs::is_directory(path, error)) throw FileError("cannot write " + name + ": it is a folder");
  if (path.has_parent_path() && !fs::is_directory(path.parent_path(), error)) {
    throw FileError("cannot write " + name + ": there is no folder " + path.parent_path().string());
  }
}

// Refuses, where it cannot draw, before anything else is done.
void check_pdf() {
  if (!can_draw_pdf()) static_cast<void>(pdf_document({1, 1}, {}, "", ""));
}

// One row of the grid: figures that stand side by side, with lines around them.
struct GridPage {
  std::vector<std::vector<Figure>> rows;
};

double row_height(const std::vector<Figure>& row, double width) {
  double height = 0;
  for (const Figure& figure : row) {
    height = std::max(height, figure.size.height * width / figure.size.width);
  }
  return std::min(height, kA4.height);
}

void draw_page(const GridPage& page, double width, Canvas& canvas) {
  const Stroke line = {{0, 0, 0}, 0.33, 1, {}};  // a quarter of a point
  double top = 0;
  for (const auto& row : page.rows) {
    const double height = row_height(row, width);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double left = static_cast<double>(i) * width;
      const double scale = std::min(width / row[i].size.width, kA4.height / row[i].size.height);
      PlacedCanvas placed(canvas, {left, top}, scale);
      draw(row[i], placed);
      const std::array<Point, 5> frame = {Point{left, top}, Point{left + width, top},
                                          Point{left + width, top + height},
                                          Point{left, top + height}, Point{left, top}};
      canvas.polyline(frame, line);
    }
    top += height;
  }
}

}  // namespace

void check_report_path(const fs::path& path) {
  const std::string ending = lower(path.extension().string());
  if (ending != ".pdf" && ending != ".html" && ending != ".htm") {
    throw ConfigError("cannot tell the format of '" + path.string() +
                      "'; end its name in .pdf or .html");
  }
  if (ending == ".pdf") check_pdf();
  check_place(path);
}

void write_report(const Report& report, const fs::path& path) {
  check_report_path(path);
  storage::write_file_atomically(path,
                                 lower(path.extension().string()) == ".pdf"
                                     ? pdf_document(kA4, report_pages(report), report.title, "")
                                     : html_report(report));
}

void write_figures_pdf(const std::vector<Figure>& figures, const fs::path& path,
                       const std::string& title) {
  if (figures.empty()) throw ConfigError("there is no figure to put into " + path.string());
  if (lower(path.extension().string()) != ".pdf") {
    throw ConfigError("cannot write '" + path.string() + "'; end its name in .pdf");
  }
  check_pdf();
  check_place(path);
  constexpr std::size_t kColumns = 2;
  const double width = kA4.width / kColumns;
  std::vector<GridPage> pages(1);
  double used = 0;
  for (std::size_t begin = 0; begin < figures.size(); begin += kColumns) {
    const auto first = figures.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last =
        figures.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kColumns, figures.size()));
    std::vector<Figure> row(first, last);
    const double height = row_height(row, width);
    if (used > 0 && used + height > kA4.height) {
      pages.emplace_back();
      used = 0;
    }
    used += height;
    pages.back().rows.push_back(std::move(row));
  }
  std::vector<Drawing> drawings;
  drawings.reserve(pages.size());
  for (const GridPage& page : pages) {
    drawings.push_back([&page, width](Canvas& canvas) { draw_page(page, width, canvas); });
  }
  storage::write_file_atomically(path, pdf_document(kA4, drawings, title, ""));
}

}  // namespace cohort::report
