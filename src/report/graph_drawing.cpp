#include "report/graph_drawing.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "report/curve_style.h"
#include "report/picture.h"
#include "report/png_canvas.h"
#include "report/svg_canvas.h"
#include "report/text.h"
#include "storage/file.h"

namespace cohort::report {
namespace {

constexpr Colour kEdge = {96, 108, 122};
constexpr Colour kFewLinks = {86, 160, 211};
constexpr Colour kManyLinks = {0, 72, 130};
constexpr double kMargin = 24;
constexpr double kTitleSize = 18;
constexpr double kTextSize = 13;
constexpr double kNumberSize = 11;  // of nodes too small to hold their own
constexpr double kSmallestSide = 420;
constexpr double kLargestSide = 1000;

double header_height(const GraphPicture& picture) {
  return kMargin + kTitleSize + (picture.subtitle.empty() ? 0 : kTextSize + 8) +
         (picture.groups.empty() ? 0 : kTextSize + 12);
}

double side_of(const GraphPicture& picture) {
  const double each = picture.layout == GraphLayout::kFree ? 70 : 40;
  return std::clamp(each * std::sqrt(picture.nodes) + 260, kSmallestSide, kLargestSide);
}

// Around the nodes' centres: for nodes, numbers beside them, and what leaves a grid.
double room_of(const GraphPicture& picture) {
  return picture.layout == GraphLayout::kGrid ? 56 : 36;
}

// Of the square between the rooms; grids with few rows do not need all of it.
double height_share(const GraphPicture& picture) {
  if (picture.layout != GraphLayout::kGrid) return 1;
  const int rows = (picture.nodes + picture.columns - 1) / picture.columns;
  return (rows - 1.0) / std::max({rows - 1, picture.columns - 1, 1});
}

// Everything about one picture that its parts need.
struct Scene {
  std::vector<Point> places;
  double radius = 0;
  double spacing = 0;  // of a grid
  bool numbers_inside = true;
  bool has_numbers = true;
};

double nearest_distance(const std::vector<Point>& places) {
  double nearest = 1e9;
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      nearest = std::min(nearest, std::hypot(places[i].x - places[j].x, places[i].y - places[j].y));
    }
  }
  return nearest;
}

Scene scene_of(const GraphPicture& picture) {
  std::vector<std::pair<int, int>> edges;
  for (const GraphLink& link : picture.links) edges.emplace_back(link.from, link.to);
  Scene scene;
  scene.places = node_places(picture.layout, picture.nodes, edges, picture.columns);
  const double room = room_of(picture);
  const double inner = side_of(picture) - 2 * room;
  const double top = header_height(picture) + room - inner * (1 - height_share(picture)) / 2;
  for (Point& place : scene.places) place = {room + inner * place.x, top + inner * place.y};
  const double nearest = nearest_distance(scene.places);
  scene.spacing = nearest;
  const double share = picture.layout == GraphLayout::kFree ? 0.42 : 0.3;
  scene.radius = std::clamp(share * nearest, 2.0, 17.0);
  scene.numbers_inside = scene.radius >= 7;
  scene.has_numbers =
      scene.numbers_inside || (picture.layout == GraphLayout::kCircle && nearest >= kNumberSize);
  return scene;
}

Point towards(Point from, Point to, double distance) {
  const double length = std::max(std::hypot(to.x - from.x, to.y - from.y), 1e-9);
  return {from.x + (to.x - from.x) * distance / length,
          from.y + (to.y - from.y) * distance / length};
}

// A link between opposite borders of a grid: it leaves at one and comes back at the other.
bool goes_around(const GraphPicture& picture, const GraphLink& link) {
  if (picture.layout != GraphLayout::kGrid) return false;
  const int rows = std::abs(link.from / picture.columns - link.to / picture.columns);
  const int columns = std::abs(link.from % picture.columns - link.to % picture.columns);
  return rows > 1 || columns > 1;
}

void draw_link(Canvas& canvas, const GraphPicture& picture, const Scene& scene,
               const GraphLink& link, const Stroke& stroke) {
  const Point from = scene.places[link.from];
  const Point to = scene.places[link.to];
  if (goes_around(picture, link)) {
    const double reach = std::min(scene.spacing * 0.55, scene.radius + 30);
    Stroke dashed = stroke;
    dashed.dashes = {4, 4};
    draw_line(canvas, from, towards(from, to, -reach), dashed);
    draw_line(canvas, to, towards(to, from, -reach), dashed);
    return;
  }
  if (!picture.directed) {
    draw_line(canvas, from, to, stroke);
    return;
  }
  const double length = std::clamp(scene.radius * 0.75, 5.0, 10.0);
  const Point tip = towards(to, from, scene.radius + 2);
  const Point base = towards(tip, from, length);
  const Point across = {(tip.y - base.y) * 0.42, (base.x - tip.x) * 0.42};
  const std::array<Point, 3> head = {tip, Point{base.x + across.x, base.y + across.y},
                                     Point{base.x - across.x, base.y - across.y}};
  draw_line(canvas, from, base, stroke);
  canvas.polygon(head, stroke.colour, {stroke.colour, 0, 1, {}});
}

void draw_links(Canvas& canvas, const GraphPicture& picture, const Scene& scene) {
  double heaviest = 0;
  for (const GraphLink& link : picture.links) heaviest = std::max(heaviest, link.weight);
  // Many lines over one another must leave something to see through.
  const double crowd = static_cast<double>(picture.links.size()) / std::max(picture.nodes, 1);
  const double opacity = std::clamp(4.0 / std::max(crowd, 1.0), 0.18, 0.85);
  const double thickest = std::clamp(scene.radius * 0.28, 0.8, 3.0);
  for (const GraphLink& link : picture.links) {
    const Colour colour = picture.groups.empty() ? kEdge : curve_style(link.group).colour;
    const double share = heaviest > 0 ? link.weight / heaviest : 1;
    draw_link(canvas, picture, scene, link, {colour, thickest * (0.3 + 0.7 * share), opacity, {}});
  }
}

Colour between(Colour low, Colour high, double share) {
  const auto mix = [share](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * share));
  };
  return {mix(low.red, high.red), mix(low.green, high.green), mix(low.blue, high.blue)};
}

void draw_disc(Canvas& canvas, Point centre, double radius, Colour fill) {
  std::array<Point, 32> corners;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / corners.size();
    corners[i] = {centre.x + radius * std::cos(angle), centre.y + radius * std::sin(angle)};
  }
  canvas.polygon(corners, fill, {kWhite, std::clamp(radius * 0.15, 0.5, 1.5), 1, {}});
}

void draw_nodes(Canvas& canvas, const GraphPicture& picture, const Scene& scene) {
  std::vector<int> links(picture.nodes);
  for (const GraphLink& link : picture.links) {
    ++links[link.from];
    ++links[link.to];
  }
  const auto [least, most] = std::minmax_element(links.begin(), links.end());
  const Point middle = {side_of(picture) / 2, header_height(picture) + side_of(picture) / 2};
  for (int node = 0; node < picture.nodes; ++node) {
    const Point place = scene.places[node];
    const double share = *most == *least ? 0.6 : (links[node] - *least) * 1.0 / (*most - *least);
    draw_disc(canvas, place, scene.radius, between(kFewLinks, kManyLinks, share));
    if (!scene.has_numbers) continue;
    const std::string number = std::to_string(node);
    if (scene.numbers_inside) {
      const double size = std::min(scene.radius * (number.size() > 2 ? 0.75 : 0.95), 13.0);
      canvas.text({place.x, place.y + 0.36 * size}, number,
                  {.size = size, .colour = kWhite, .bold = true, .anchor = TextAnchor::kMiddle});
    } else {
      const Point beside = towards(place, middle, -(scene.radius + 0.9 * kNumberSize));
      canvas.text({beside.x, beside.y + 0.36 * kNumberSize}, number,
                  {.size = kNumberSize, .colour = kQuiet, .anchor = TextAnchor::kMiddle});
    }
  }
}

void draw_header(Canvas& canvas, const GraphPicture& picture) {
  const double width = side_of(picture) - 2 * kMargin;
  double baseline = kMargin + 0.8 * kTitleSize;
  canvas.text({kMargin, baseline}, shortened(picture.title, width, kTitleSize, true),
              {.size = kTitleSize, .colour = kInk, .bold = true});
  if (!picture.subtitle.empty()) {
    baseline += kTextSize + 8;
    canvas.text({kMargin, baseline}, shortened(picture.subtitle, width, kTextSize),
                {.size = kTextSize, .colour = kQuiet});
  }
  if (picture.groups.empty()) return;
  baseline += kTextSize + 12;
  double x = kMargin;
  for (std::size_t group = 0; group < picture.groups.size(); ++group) {
    const double y = baseline - 0.35 * kTextSize;
    draw_line(canvas, {x, y}, {x + 20, y}, {curve_style(group).colour, 3, 1, {}});
    canvas.text({x + 26, baseline}, picture.groups[group], {.size = kTextSize, .colour = kInk});
    x += 26 + text_width(picture.groups[group], kTextSize) + 16;
  }
}

}  // namespace

Size graph_size(const GraphPicture& picture) {
  const double room = room_of(picture);
  const double inner = side_of(picture) - 2 * room;
  return {side_of(picture), header_height(picture) + 2 * room + inner * height_share(picture)};
}

void draw(const GraphPicture& picture, Canvas& canvas) {
  draw_header(canvas, picture);
  if (picture.nodes < 1) return;
  const Scene scene = scene_of(picture);
  draw_links(canvas, picture, scene);
  draw_nodes(canvas, picture, scene);
}

void write_graph_picture(const GraphPicture& picture, const std::filesystem::path& path) {
  check_picture_path(path);
  constexpr double kPixelsAUnit = 2;
  const Drawing drawing = [&](Canvas& canvas) { draw(picture, canvas); };
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  storage::write_file_atomically(
      path, ending == ".png" ? png_picture(graph_size(picture), kPixelsAUnit, drawing)
                             : svg_picture(graph_size(picture), picture.title, drawing));
}

}  // namespace cohort::report
