// draw_report OUT RUN...: writes the report of the runs, or for an OUT that begins with "figures"
// their figures alone. Exit status 3: a build without PDF.
#include <cstdio>
#include <exception>

#include "report/learning_curves.h"
#include "report/pdf_document.h"
#include "report/report_file.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::filesystem::path out = argv[1];
  if (out.extension() == ".pdf" && !cohort::can_draw_pdf()) return 3;
  try {
    std::vector<cohort::RunRecords> runs;
    for (const auto& folder : cohort::expanded_runs({argv + 2, argv + argc})) {
      runs.push_back(cohort::read_run(folder));
    }
    if (out.filename().string().starts_with("figures")) {
      std::vector<cohort::Figure> figures;
      for (const cohort::RunRecords& run : runs) {
        figures.push_back(cohort::dump_curves(run, run.folder.filename().string()).figure);
      }
      cohort::write_figures_pdf(figures, out, "figures");
    } else {
      cohort::write_report(cohort::make_report(runs, {}), out);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
