#include "report/report_pages.h"

#include "report/page_writer.h"
#include "report/pdf_document.h"

namespace cohort::report {

std::vector<Drawing> report_pages(const Report& report) {
  constexpr double kMargin = 56;
  PageWriter writer(kA4, kMargin);
  writer.title(report.title);
  if (!report.created.empty()) writer.small_print("Report of " + report.created);
  writer.heading("Conclusion");
  for (const std::string& sentence : report.conclusion) writer.bullet(sentence);
  writer.heading("What was run");
  for (const Fact& fact : report.facts) writer.fact(fact);
  writer.heading("Results");
  writer.table(report.summary);
  for (const std::string& remark : report.remarks) writer.small_print(remark);
  if (!report.commands.empty()) writer.heading("Commands");
  writer.commands(report.commands);
  if (!report.runs.empty()) {
    const std::size_t columns = report.runs.size() == 1 ? 1 : 2;
    writer.heading(columns == 1 ? "The run" : "The runs one by one",
                   writer.height_of_row(report.runs.front(), columns));
    writer.figures(report.runs, columns);
  }
  if (!report.comparisons.empty()) {
    writer.heading(report.summary.rows.size() > 1 ? "All runs together" : "Over time",
                   writer.height_of_row(report.comparisons.front(), 1));
    writer.figures(report.comparisons, 1);
  }
  if (!report.notes.empty()) {
    writer.heading("Notes");
    for (const std::string& note : report.notes) writer.small_print(note);
  }
  return std::move(writer).finish(report.title);
}

}  // namespace cohort::report
