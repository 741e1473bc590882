#include "report/graph_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace cohort::report {
namespace {

constexpr Point kMiddle = {0.5, 0.5};

// `count` places on the circle that touches the square's sides.
std::vector<Point> on_circle(int count) {
  std::vector<Point> places;
  for (int i = 0; i < count; ++i) {
    const double angle = 2 * std::numbers::pi * i / count;
    places.push_back({0.5 + 0.5 * std::sin(angle), 0.5 - 0.5 * std::cos(angle)});
  }
  return places;
}

std::vector<Point> on_grid(int nodes, int columns) {
  const int rows = (nodes + columns - 1) / columns;
  // Equal distances in both directions, the longer one filling the square.
  const double spacing = 1.0 / std::max({columns - 1, rows - 1, 1});
  const Point corner = {0.5 - spacing * (columns - 1) / 2, 0.5 - spacing * (rows - 1) / 2};
  std::vector<Point> places;
  for (int i = 0; i < nodes; ++i) {
    const int row = i / columns;
    places.push_back({corner.x + spacing * (i % columns), corner.y + spacing * row});
  }
  return places;
}

// Lengths of the shortest paths from `start`; those that do not exist count as `nodes`.
std::vector<double> distances_from(int start, const std::vector<std::vector<int>>& beside) {
  std::vector<double> distance(beside.size(), static_cast<double>(beside.size()));
  std::vector<int> queue = {start};
  distance[start] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (const int other : beside[queue[next]]) {
      if (distance[other] <= distance[queue[next]] + 1) continue;
      distance[other] = distance[queue[next]] + 1;
      queue.push_back(other);
    }
  }
  return distance;
}

std::vector<Point> scaled_to_square(std::vector<Point> places) {
  Point low = places.front();
  Point high = places.front();
  for (const Point& place : places) {
    low = {std::min(low.x, place.x), std::min(low.y, place.y)};
    high = {std::max(high.x, place.x), std::max(high.y, place.y)};
  }
  const double side = std::max({high.x - low.x, high.y - low.y, 1e-9});
  for (Point& place : places) {
    place = {0.5 + (place.x - (low.x + high.x) / 2) / side,
             0.5 + (place.y - (low.y + high.y) / 2) / side};
  }
  return places;
}

std::vector<Point> free_places(int nodes, const std::vector<std::pair<int, int>>& edges) {
  std::vector<std::vector<int>> beside(nodes);
  for (const auto& [a, b] : edges) {
    beside[a].push_back(b);
    beside[b].push_back(a);
  }
  std::vector<std::vector<double>> wanted;
  for (int node = 0; node < nodes; ++node) wanted.push_back(distances_from(node, beside));
  // A sunflower: no two places alike, and no symmetry that the moves below could not break.
  std::vector<Point> places;
  for (int i = 0; i < nodes; ++i) {
    const double radius = std::sqrt(i + 0.5);
    places.push_back({radius * std::cos(2.4 * i), radius * std::sin(2.4 * i)});
  }
  const int rounds = std::clamp(static_cast<int>(1e8 / (1.0 * nodes * nodes)), 50, 400);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < nodes; ++i) {
      Point sum;
      double weights = 0;
      for (int j = 0; j < nodes; ++j) {
        if (i == j) continue;
        const double x = places[i].x - places[j].x;
        const double y = places[i].y - places[j].y;
        const double stretch = wanted[i][j] / std::max(std::hypot(x, y), 1e-9);
        const double weight = 1 / (wanted[i][j] * wanted[i][j]);
        sum.x += weight * (places[j].x + stretch * x);
        sum.y += weight * (places[j].y + stretch * y);
        weights += weight;
      }
      if (weights > 0) places[i] = {sum.x / weights, sum.y / weights};
    }
  }
  return scaled_to_square(std::move(places));
}

}  // namespace

std::vector<Point> node_places(GraphLayout layout, int nodes,
                               const std::vector<std::pair<int, int>>& edges, int columns) {
  if (nodes <= 1) return std::vector<Point>(std::max(nodes, 0), kMiddle);
  switch (layout) {
    case GraphLayout::kCircle:
      return on_circle(nodes);
    case GraphLayout::kGrid:
      return on_grid(nodes, columns);
    case GraphLayout::kWheel: {
      std::vector<Point> places = on_circle(nodes - 1);
      places.insert(places.begin(), kMiddle);
      return places;
    }
    case GraphLayout::kFree:
      return free_places(nodes, edges);
  }
  return {};
}

}  // namespace cohort::report
