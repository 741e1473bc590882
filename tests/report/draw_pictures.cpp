// draw_pictures OUT X Y[,Y...] RUN...: draws without smoothing. Exit status 3: a build without PNG.
#include <cstdio>
#include <exception>

#include "core/text.h"
#include "report/learning_curves.h"
#include "report/picture.h"
#include "report/png_canvas.h"

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string out = argv[1];
  if (out.ends_with(".png") && !cohort::report::can_draw_png()) return 3;
  try {
    std::vector<cohort::report::RunRecords> runs;
    for (int i = 4; i < argc; ++i) runs.push_back(cohort::report::read_run(argv[i]));
    const auto curves = cohort::report::learning_curves(
        runs, {.y = cohort::split(argv[3], ','), .x = argv[2], .smooth = 1});
    cohort::report::write_picture(curves.figure, out, 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
