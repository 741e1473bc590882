// Pages that fill from top to bottom: headings, paragraphs, tables and figures in a row.
//
// What belongs together stays together: lines of a row, a figure, a heading and what follows it.
// Tables repeat their header on a new page. Layout is that of text_width(), so it does not depend
// on the format. Used from one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/canvas.h"
#include "report/chart.h"
#include "report/report_facts.h"
#include "report/summary_table.h"

namespace cohort::report {

class PageWriter {
 public:
  PageWriter(Size page, double margin);

  void title(const std::string& text);
  // On the page where `following` of height fits below it.
  void heading(const std::string& text, double following = 80);
  void small_print(const std::string& text);
  void bullet(const std::string& text);
  void fact(const Fact& fact);                       // the name in a column of its own
  void commands(const std::vector<Fact>& commands);  // likewise, the text in monospace
  void table(const Table& table);
  // Side by side, scaled so that `columns` of them fill the width.
  void figures(const std::vector<Figure>& figures, std::size_t columns);
  double height_of_row(const Figure& figure, std::size_t columns) const;
  void space(double height);
  void new_page();

  // The pages, each with its number and `title` below. Call once, last.
  std::vector<Drawing> finish(const std::string& title) &&;

 private:
  double bottom() const { return page_.height - margin_; }
  double width() const { return page_.width - 2 * margin_; }
  void reserve(double height);  // begins a new page unless so much room is left
  void add(Drawing drawing) { pages_.back().push_back(std::move(drawing)); }
  void command(const Fact& command, double column);
  double figure_width(std::size_t columns) const;
  void lines(const std::vector<std::string>& texts, double left, const TextStyle& style);
  void table_header(const Table& table, const std::vector<double>& widths, double size);

  Size page_;
  double margin_;
  double y_;  // where the next thing begins
  std::vector<std::vector<Drawing>> pages_;
};

}  // namespace cohort::report
