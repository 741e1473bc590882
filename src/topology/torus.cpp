#include "topology/torus.h"

#include "topology/edge_graph.h"
#include "topology/sizes.h"

namespace cohort::topology {

int torus_columns(int size) {
  int rows = square_root(size);
  while (size % rows != 0) --rows;
  return size / rows;
}

bool torus_is_ring(int size) { return size <= 4 || torus_columns(size) == size; }

std::unique_ptr<Topology> make_torus(int size) {
  check_size(size);
  const int columns = torus_columns(size);
  const int rows = size / columns;
  std::vector<Edge> edges;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const Rank rank = row * columns + column;
      edges.push_back({rank, row * columns + (column + 1) % columns});
      edges.push_back({rank, (row + 1) % rows * columns + column});
    }
  }
  return std::make_unique<EdgeGraph>("torus", size, metropolis(size, simple(std::move(edges))));
}

}  // namespace cohort::topology
