#include "report/page_writer.h"

#include <algorithm>
#include <array>

#include "report/placed_canvas.h"
#include "report/text.h"

namespace cohort::report {
namespace {

constexpr Colour kPageInk = {25, 25, 25};
constexpr Colour kPageQuiet = {95, 95, 95};
constexpr Colour kRule = {150, 150, 150};
constexpr Colour kFaintRule = {222, 222, 222};
constexpr double kBodySize = 13;
constexpr double kSmallSize = 11;
constexpr double kCommandSize = 10;
constexpr double kFooterHeight = 26;
constexpr double kLineHeight = 1.42;  // of the size
constexpr double kBaseline = 0.95;    // of the size, below the top of a line
constexpr double kFactColumn = 100;
constexpr double kCommandGap = 10;  // between a label and its command
constexpr double kCellGap = 11;
constexpr double kLargestTable = 11;
constexpr double kSmallestTable = 8.5;
constexpr double kFigureGap = 22;

Drawing rule(double left, double right, double y, Colour colour) {
  return [=](Canvas& canvas) {
    const std::array<Point, 2> ends = {Point{left, y}, Point{right, y}};
    canvas.polyline(ends, {colour, 0.8, 1, {}});
  };
}

// Header cells break at spaces, and long single words of settings at their hyphens.
std::vector<std::string> header_lines(const std::string& title, double width, double size) {
  std::string text = title;
  if (text_width(text, size, true) > width) {
    for (std::size_t at = text.find('-'); at != std::string::npos; at = text.find('-', at + 2)) {
      if (at + 1 < text.size()) text.insert(at + 1, " ");
    }
  }
  return wrapped(text, width, {.size = size, .bold = true});
}

double header_width(const std::string& title, double size) {
  double widest = 0;
  std::string text = title;
  std::replace(text.begin(), text.end(), '-', ' ');
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    widest = std::max(widest, text_width(text.substr(begin, end - begin) + "-", size, true));
    begin = end + 1;
  }
  return widest;
}

std::vector<double> column_widths(const Table& table, double size) {
  std::vector<double> widths;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    double widest = header_width(table.columns[column].title, size);
    for (const auto& row : table.rows) widest = std::max(widest, text_width(row[column], size));
    widths.push_back(widest + kCellGap);
  }
  return widths;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// Spreads the columns over the whole width; where they do not fit, the first gives way.
void fit(std::vector<double>& widths, double width) {
  const double missing = sum_of(widths) - width;
  if (missing > 0) {
    widths.front() = std::max(widths.front() - missing, 50.0);
    return;
  }
  for (double& each : widths) each -= missing / static_cast<double>(widths.size());
}

}  // namespace

PageWriter::PageWriter(Size page, double margin)
    : page_(page), margin_(margin), y_(margin), pages_(1) {}

void PageWriter::reserve(double height) {
  if (y_ + height > bottom() - kFooterHeight && y_ > margin_) new_page();
}

void PageWriter::new_page() {
  pages_.emplace_back();
  y_ = margin_;
}

void PageWriter::space(double height) {
  if (y_ > margin_) y_ += height;
}

void PageWriter::lines(const std::vector<std::string>& texts, double left, const TextStyle& style) {
  const double height = style.size * kLineHeight;
  for (const std::string& text : texts) {
    reserve(height);
    const Point baseline = {left, y_ + kBaseline * style.size};
    add([=](Canvas& canvas) { canvas.text(baseline, text, style); });
    y_ += height;
  }
}

void PageWriter::title(const std::string& text) {
  constexpr double kSize = 26;
  lines(wrapped(text, width(), {.size = kSize, .bold = true}), margin_,
        {.size = kSize, .colour = kPageInk, .bold = true});
  y_ += 6;
}

void PageWriter::heading(const std::string& text, double following) {
  constexpr double kSize = 16;
  space(14);
  reserve(kSize * kLineHeight + 5 + following);
  lines({text}, margin_, {.size = kSize, .colour = kPageInk, .bold = true});
  y_ += 5;
}

void PageWriter::small_print(const std::string& text) {
  lines(wrapped(text, width(), {.size = kSmallSize}), margin_,
        {.size = kSmallSize, .colour = kPageQuiet});
  y_ += 4;
}

void PageWriter::bullet(const std::string& text) {
  constexpr double kIndent = 16;
  const std::vector<std::string> parts = wrapped(text, width() - kIndent, {.size = kBodySize});
  // A sentence stands whole on one page.
  reserve(static_cast<double>(parts.size()) * kBodySize * kLineHeight);
  const Point baseline = {margin_ + 2, y_ + kBaseline * kBodySize};
  add([=](Canvas& canvas) { canvas.text(baseline, "•", {.size = kBodySize, .colour = kPageInk}); });
  lines(parts, margin_ + kIndent, {.size = kBodySize, .colour = kPageInk});
  y_ += 5;
}

void PageWriter::fact(const Fact& fact) {
  const std::vector<std::string> parts =
      wrapped(fact.value, width() - kFactColumn, {.size = kBodySize});
  reserve(static_cast<double>(parts.size()) * kBodySize * kLineHeight);
  const Point baseline = {margin_, y_ + kBaseline * kBodySize};
  add([=, name = fact.name](Canvas& canvas) {
    canvas.text(baseline, name, {.size = kBodySize, .colour = kPageQuiet});
  });
  lines(parts, margin_ + kFactColumn, {.size = kBodySize, .colour = kPageInk});
  y_ += 3;
}

void PageWriter::commands(const std::vector<Fact>& commands) {
  constexpr double kWidestColumn = 190;
  double column = kFactColumn;
  for (const Fact& each : commands) {
    column = std::max(column, text_width(each.name, kSmallSize) + kCommandGap);
  }
  for (const Fact& each : commands) command(each, std::min(column, kWidestColumn));
}

void PageWriter::command(const Fact& command, double column) {
  const std::vector<std::string> names =
      wrapped(command.name, column - kCommandGap, {.size = kSmallSize});
  const std::vector<std::string> parts =
      wrapped(command.value, width() - column, {.size = kCommandSize, .monospace = true});
  const double name_height = static_cast<double>(names.size()) * kSmallSize * kLineHeight;
  const double height = static_cast<double>(parts.size()) * kCommandSize * kLineHeight;
  reserve(std::min(std::max(height, name_height), page_.height / 2));
  const double top = y_;
  lines(names, margin_, {.size = kSmallSize, .colour = kPageQuiet});
  if (y_ > top) y_ = top;  // beside it, unless the page has changed
  lines(parts, margin_ + column, {.size = kCommandSize, .colour = kPageInk, .monospace = true});
  y_ = std::max(y_, top + name_height) + 4;
}

void PageWriter::table_header(const Table& table, const std::vector<double>& widths, double size) {
  std::vector<std::vector<std::string>> cells;
  std::size_t most = 1;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    cells.push_back(header_lines(table.columns[i].title, widths[i] - kCellGap + 0.5, size));
    most = std::max(most, cells.back().size());
  }
  add(rule(margin_, margin_ + width(), y_, kRule));
  y_ += 4;
  double left = margin_;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool number = table.columns[i].is_number;
    // All headers stand on the rule below them.
    double y = y_ + static_cast<double>(most - cells[i].size()) * size * 1.25 + kBaseline * size;
    for (const std::string& text : cells[i]) {
      const Point baseline = {number ? left + widths[i] - kCellGap / 2 : left + kCellGap / 2, y};
      add([=](Canvas& canvas) {
        canvas.text(baseline, text,
                    {size, kPageInk, true, number ? TextAnchor::kEnd : TextAnchor::kStart});
      });
      y += size * 1.25;
    }
    left += widths[i];
  }
  y_ += static_cast<double>(most) * size * 1.25 + 5;
  add(rule(margin_, margin_ + width(), y_, kRule));
  y_ += 2;
}

void PageWriter::table(const Table& table) {
  if (table.columns.empty()) return;
  double size = kLargestTable;
  while (size > kSmallestTable && sum_of(column_widths(table, size)) > width()) size -= 0.25;
  std::vector<double> widths = column_widths(table, size);
  fit(widths, width());
  const double height = size * 1.75;
  reserve(6 * height);
  table_header(table, widths, size);
  for (const auto& row : table.rows) {
    if (y_ + height > bottom() - kFooterHeight) {
      add(rule(margin_, margin_ + width(), y_, kRule));
      new_page();
      table_header(table, widths, size);
    } else if (&row != &table.rows.front()) {
      add(rule(margin_, margin_ + width(), y_, kFaintRule));
    }
    double left = margin_;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool number = table.columns[i].is_number;
      const std::string text = shortened(row[i], widths[i] - kCellGap + 1, size);
      const Point baseline = {number ? left + widths[i] - kCellGap / 2 : left + kCellGap / 2,
                              y_ + height / 2 + 0.36 * size};
      add([=](Canvas& canvas) {
        canvas.text(baseline, text,
                    {size, kPageInk, false, number ? TextAnchor::kEnd : TextAnchor::kStart});
      });
      left += widths[i];
    }
    y_ += height;
  }
  add(rule(margin_, margin_ + width(), y_, kRule));
  y_ += 8;
}

double PageWriter::figure_width(std::size_t columns) const {
  const auto count = static_cast<double>(columns);
  return (width() - (count - 1) * kFigureGap) / count;
}

double PageWriter::height_of_row(const Figure& figure, std::size_t columns) const {
  return figure.size.height * figure_width(columns) / figure.size.width;
}

void PageWriter::figures(const std::vector<Figure>& figures, std::size_t columns) {
  const double each = figure_width(columns);
  for (std::size_t begin = 0; begin < figures.size(); begin += columns) {
    const std::size_t end = std::min(begin + columns, figures.size());
    double height = 0;
    for (std::size_t i = begin; i < end; ++i) {
      height = std::max(height, height_of_row(figures[i], columns));
    }
    reserve(height);
    for (std::size_t i = begin; i < end; ++i) {
      const Point origin = {margin_ + static_cast<double>(i - begin) * (each + kFigureGap), y_};
      const double scale = each / figures[i].size.width;
      add([=, figure = figures[i]](Canvas& canvas) {
        PlacedCanvas placed(canvas, origin, scale);
        draw(figure, placed);
      });
    }
    y_ += height + 10;
  }
}

std::vector<Drawing> PageWriter::finish(const std::string& title) && {
  std::vector<Drawing> result;
  const std::size_t count = pages_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const double y = bottom() - 2;
    const double right = margin_ + width();
    const std::string number = std::to_string(i + 1) + " / " + std::to_string(count);
    const std::string shown = shortened(title, width() - 80, kSmallSize);
    result.push_back([=, this_margin = margin_, parts = std::move(pages_[i])](Canvas& canvas) {
      for (const Drawing& part : parts) part(canvas);
      rule(this_margin, right, y - 14, kFaintRule)(canvas);
      canvas.text({this_margin, y}, shown, {.size = kSmallSize, .colour = kPageQuiet});
      canvas.text({right, y}, number,
                  {.size = kSmallSize, .colour = kPageQuiet, .anchor = TextAnchor::kEnd});
    });
  }
  return result;
}

}  // namespace cohort::report
