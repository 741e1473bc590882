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
  if (out.extension() == ".pdf" && !cohort::report::can_draw_pdf()) return 3;
  try {
    std::vector<cohort::report::RunRecords> runs;
    for (const auto& folder : cohort::report::expanded_runs({argv + 2, argv + argc})) {
      runs.push_back(cohort::report::read_run(folder));
    }
    if (out.filename().string().starts_with("figures")) {
      std::vector<cohort::report::Figure> figures;
      for (const cohort::report::RunRecords& run : runs) {
        figures.push_back(cohort::report::dump_curves(run, run.folder.filename().string()).figure);
      }
      cohort::report::write_figures_pdf(figures, out, "figures");
    } else {
      cohort::report::write_report(cohort::report::make_report(runs, {}), out);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
