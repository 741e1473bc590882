// Where the nodes of a graph are drawn. Pure and deterministic.
#pragma once

#include <utility>
#include <vector>

#include "report/canvas.h"

namespace cohort::report {

enum class GraphLayout {
  kCircle,  // in order, clockwise from the top
  kGrid,    // row by row, `columns` a row
  kWheel,   // node 0 in the middle, the others around it
  kFree,    // as far apart as the graph's paths are long (stress majorization, Gansner et al. 2004)
};

// One place for each node, in the unit square. `edges` matter to kFree only, `columns` to kGrid
// only, where it is at least 1. kFree takes time that grows with the square of `nodes`: about 2 s
// for 1,000.
std::vector<Point> node_places(GraphLayout layout, int nodes,
                               const std::vector<std::pair<int, int>>& edges, int columns = 1);

}  // namespace cohort::report
