#include "report/html_report.h"

#include "report/svg_canvas.h"

namespace cohort::report {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #222; --quiet: #5f5f5f; --paper: #fff; --rule: #c8c8c8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --quiet: #a8a8a8; --paper: #17191c; --rule: #4a4d52; }
}
@media print { :root { --ink: #222; --quiet: #5f5f5f; --paper: #fff; --rule: #c8c8c8; } }
body { margin: 0 auto; padding: 2rem 1.2rem; max-width: 72rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif; }
h1 { line-height: 1.2; } h2 { margin-top: 2.2rem; }
.quiet, figcaption, dt { color: var(--quiet); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; }
dd { margin: 0; overflow-wrap: anywhere; }
pre { margin: .1rem 0 .8rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--rule); text-align: left; }
th { vertical-align: bottom; border-top: 1px solid var(--rule); }
.number { text-align: right; }
td:first-child { white-space: nowrap; }
figure { margin: 0; padding: .5rem; break-inside: avoid; background: #fff; border-radius: 4px; }
figure svg { display: block; width: 100%; height: auto; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(24rem, 1fr)); gap: 1rem; }
.rows { display: grid; gap: 1rem; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } .grid {
  grid-template-columns: 1fr 1fr; } tr { break-inside: avoid; } h2 { break-after: avoid; } }
)";

std::string figure_of(const Figure& figure) {
  std::string svg =
      svg_picture(figure.size, figure.title, [&](Canvas& canvas) { draw(figure, canvas); });
  svg.erase(0, svg.find("<svg"));  // the declaration belongs to files of their own
  return "<figure>\n" + svg + "</figure>\n";
}

std::string element(const std::string& tag, const std::string& text,
                    const std::string& attributes = "") {
  return "<" + tag + (attributes.empty() ? "" : " " + attributes) + ">" + escaped_xml(text) + "</" +
         tag + ">\n";
}

std::string table_of(const Table& table) {
  const auto attributes = [&](std::size_t column) {
    return table.columns[column].is_number ? "class=\"number\"" : "";
  };
  std::string html = "<div class=\"wide\"><table>\n<thead><tr>\n";
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    html += element("th", table.columns[i].title, attributes(i));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>\n";
    for (std::size_t i = 0; i < row.size(); ++i) html += element("td", row[i], attributes(i));
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string figures_of(const std::vector<Figure>& figures, const char* kind) {
  std::string html = std::string("<div class=\"") + kind + "\">\n";
  for (const Figure& figure : figures) html += figure_of(figure);
  return html + "</div>\n";
}

}  // namespace

std::string html_report(const Report& report) {
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += element("title", report.title) + "<style>" + kStyle + "</style>\n</head>\n<body>\n";
  html += element("h1", report.title);
  if (!report.created.empty()) {
    html += element("p", "Report of " + report.created, "class=\"quiet\"");
  }
  html += element("h2", "Conclusion") + "<ul>\n";
  for (const std::string& sentence : report.conclusion) html += element("li", sentence);
  html += "</ul>\n";
  html += element("h2", "What was run") + "<dl>\n";
  for (const Fact& fact : report.facts) {
    html += element("dt", fact.name) + element("dd", fact.value);
  }
  html += "</dl>\n" + element("h2", "Results") + table_of(report.summary);
  for (const std::string& remark : report.remarks) html += element("p", remark, "class=\"quiet\"");
  if (!report.commands.empty()) html += element("h2", "Commands");
  for (const Fact& command : report.commands) {
    html += element("div", command.name, "class=\"quiet\"") + element("pre", command.value);
  }
  if (!report.runs.empty()) {
    html += element("h2", report.runs.size() == 1 ? "The run" : "The runs one by one");
    html += figures_of(report.runs, "grid");
  }
  if (!report.comparisons.empty()) {
    html += element("h2", report.summary.rows.size() > 1 ? "All runs together" : "Over time");
    html += figures_of(report.comparisons, "rows");
  }
  if (!report.notes.empty()) html += element("h2", "Notes");
  for (const std::string& note : report.notes) html += element("p", note, "class=\"quiet\"");
  return html + "</body>\n</html>\n";
}

}  // namespace cohort::report
