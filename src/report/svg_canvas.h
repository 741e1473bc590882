// Pictures as SVG 1.1.
#pragma once

#include <string>
#include <string_view>

#include "report/canvas.h"

namespace cohort::report {

// The whole file: UTF-8, no scripts, no links, nothing from outside, whatever `title` (what a
// screen reader says) and the texts drawn hold. Equal drawings give equal bytes.
std::string svg_picture(Size size, std::string_view title, const Drawing& drawing);

// `text` made presentable() and safe between the tags and in the attributes of XML and HTML.
std::string escaped_xml(std::string_view text);

}  // namespace cohort::report
