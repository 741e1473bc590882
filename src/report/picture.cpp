#include "report/picture.h"

#include <cctype>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "report/png_canvas.h"
#include "report/svg_canvas.h"
#include "storage/file.h"

namespace cohort::report {
namespace {

namespace fs = std::filesystem;

}  // namespace

void check_picture_path(const fs::path& path) {
  const std::string ending = lower(path.extension().string());
  if (ending != ".svg" && ending != ".png") {
    throw ConfigError("cannot tell the format of '" + path.string() +
                      "'; end its name in .svg or .png");
  }
  // Refuses, where it cannot draw, before anything else is done.
  if (ending == ".png" && !can_draw_png()) png_picture({1, 1}, 1, [](Canvas&) {});
}

void write_picture(const Figure& figure, const fs::path& path, double pixels_per_unit) {
  check_picture_path(path);
  const Drawing drawing = [&](Canvas& canvas) { draw(figure, canvas); };
  std::error_code error;
  const std::string name = path.string();
  if (fs::is_directory(path, error)) throw FileError("cannot write " + name + ": it is a folder");
  if (path.has_parent_path() && !fs::is_directory(path.parent_path(), error)) {
    throw FileError("cannot write " + name + ": there is no folder " + path.parent_path().string());
  }
  storage::write_file_atomically(path, lower(path.extension().string()) == ".png"
                                           ? png_picture(figure.size, pixels_per_unit, drawing)
                                           : svg_picture(figure.size, figure.title, drawing));
}

}  // namespace cohort::report
