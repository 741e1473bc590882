// Pictures of graphs: nodes with their numbers, edges as thick as they weigh.
//
// Knows nothing of what the graph is for; equal graphs give equal calls of the canvas.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/canvas.h"
#include "report/graph_layout.h"

namespace cohort::report {

struct GraphLink {
  int from = 0;
  int to = 0;
  double weight = 1;  // above 0; only its share of the largest matters
  int group = 0;      // an index into GraphPicture::groups
};

struct GraphPicture {
  std::string title;
  std::string subtitle;
  int nodes = 0;
  std::vector<GraphLink> links;     // an undirected one once
  bool directed = false;            // arrows from `from` to `to`
  std::vector<std::string> groups;  // each in a colour of its own, named in a legend; empty: one
  GraphLayout layout = GraphLayout::kCircle;
  int columns = 1;  // of a grid, whose links between opposite borders leave it on both sides
};

// How much room the picture wants.
Size graph_size(const GraphPicture& picture);

// Fills graph_size(). Every link joins two different nodes from 0 to nodes - 1.
void draw(const GraphPicture& picture, Canvas& canvas);

// Writes the picture as .svg or .png, whichever the path ends in; a PNG has two pixels for each
// unit. Throws ConfigError for other endings and where this build cannot draw PNG, FileError when
// the file cannot be written.
void write_graph_picture(const GraphPicture& picture, const std::filesystem::path& path);

}  // namespace cohort::report
