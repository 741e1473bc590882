#include "report/svg_canvas.h"

#include <array>
#include <charconv>
#include <cmath>

#include "report/text.h"

namespace cohort::report {
namespace {

// Hundredths are finer than any screen shows. Locales do not matter to to_chars.
std::string number(double value) {
  std::array<char, 64> digits{};
  const double rounded = std::round(value * 100) / 100 + 0.0;  // no "-0"
  const auto end = std::to_chars(digits.begin(), digits.end(), rounded).ptr;
  return {digits.data(), end};
}

std::string hexadecimal(Colour colour) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "#";
  for (const std::uint8_t part : {colour.red, colour.green, colour.blue}) {
    text += kDigits[part >> 4];
    text += kDigits[part & 15];
  }
  return text;
}

class SvgCanvas final : public Canvas {
 public:
  SvgCanvas(Size size, std::string_view title) {
    const std::string width = number(size.width);
    const std::string height = number(size.height);
    content_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    content_ += "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" role=\"img\"";
    attribute("width", width);
    attribute("height", height);
    attribute("viewBox", "0 0 " + width + " " + height);
    attribute("font-family", "'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif");
    attribute("stroke-linecap", "round");
    attribute("stroke-linejoin", "round");
    content_ += ">\n<title>" + escaped_xml(title) + "</title>\n";
    rectangle({0, 0, size.width, size.height}, {255, 255, 255});
  }

  void rectangle(const Rectangle& area, Colour fill) override {
    content_ += "<rect";
    attribute("x", number(area.left));
    attribute("y", number(area.top));
    attribute("width", number(area.width));
    attribute("height", number(area.height));
    attribute("fill", hexadecimal(fill));
    content_ += "/>\n";
  }

  void polyline(std::span<const Point> points, const Stroke& stroke) override {
    if (points.size() < 2) return;
    content_ += "<polyline";
    attribute("fill", "none");
    line(stroke);
    corners_of(points);
    content_ += "/>\n";
  }

  void polygon(std::span<const Point> corners, Colour fill, const Stroke& outline) override {
    content_ += "<polygon";
    attribute("fill", hexadecimal(fill));
    if (outline.width > 0) line(outline);
    corners_of(corners);
    content_ += "/>\n";
  }

  void text(Point baseline, std::string_view text, const TextStyle& style) override {
    content_ += "<text";
    attribute("x", number(baseline.x));
    attribute("y", number(baseline.y));
    attribute("font-size", number(style.size));
    attribute("fill", hexadecimal(style.colour));
    if (style.bold) attribute("font-weight", "bold");
    if (style.monospace) attribute("font-family", "'DejaVu Sans Mono', monospace");
    if (style.anchor == TextAnchor::kMiddle) attribute("text-anchor", "middle");
    if (style.anchor == TextAnchor::kEnd) attribute("text-anchor", "end");
    content_ += ">" + escaped_xml(text) + "</text>\n";
  }

  std::string file() && { return std::move(content_) + "</svg>\n"; }

 private:
  void attribute(std::string_view name, std::string_view value) {
    content_.append(" ").append(name).append("=\"").append(value).append("\"");
  }

  void line(const Stroke& stroke) {
    attribute("stroke", hexadecimal(stroke.colour));
    attribute("stroke-width", number(stroke.width));
    if (stroke.opacity < 1) attribute("stroke-opacity", number(stroke.opacity));
    if (stroke.dashes.empty()) return;
    std::string dashes;
    for (const double length : stroke.dashes) {
      dashes += (dashes.empty() ? "" : " ") + number(length);
    }
    attribute("stroke-dasharray", dashes);
  }

  void corners_of(std::span<const Point> points) {
    content_ += " points=\"";
    for (const Point& point : points) {
      content_ += number(point.x) + "," + number(point.y) + (&point == &points.back() ? "\"" : " ");
    }
    if (points.empty()) content_ += "\"";
  }

  std::string content_;
};

}  // namespace

std::string escaped_xml(std::string_view text) {
  std::string result;
  for (const char c : presentable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string svg_picture(Size size, std::string_view title, const Drawing& drawing) {
  SvgCanvas canvas(size, title);
  drawing(canvas);
  return std::move(canvas).file();
}

}  // namespace cohort::report
