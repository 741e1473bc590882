// Text in pictures: what may be shown, how wide it will be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort::report {

// `text` as valid UTF-8 that XML 1.0 and fonts accept: bytes and characters they do not (broken
// sequences, control characters, surrogates) become U+FFFD, white space other than ' ' a space.
std::string presentable(std::string_view text);

// About how wide `text` is in the widest of the usual sans-serif fonts, DejaVu Sans; others need
// less. `size` is the font's, as in TextStyle.
double text_width(std::string_view text, double size, bool bold = false);

// `text`, or as much of it with "…" at the end as fits into `width`.
std::string shortened(std::string_view text, double width, double size, bool bold = false);

// The same in a font whose characters are all equally wide.
double monospace_width(std::string_view text, double size);

struct WrapStyle {
  double size = 12;
  bool bold = false;
  bool monospace = false;
};

// `text` as lines no wider than `width`, broken at spaces; a word that is wider is broken anywhere.
// At least one line, which may be empty.
std::vector<std::string> wrapped(std::string_view text, double width, const WrapStyle& style);

}  // namespace cohort::report
