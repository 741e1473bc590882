#include "topology/social.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "topology/edge_graph.h"
#include "topology/sizes.h"

namespace cohort::topology {
namespace {

constexpr int kWomen = 18;
constexpr int kEvents = 14;

// Of each woman, a 1 for each event she went to, the first event leftmost.
constexpr std::array<std::uint16_t, kWomen> kAttended = {
    0b11111101100000,  // Evelyn
    0b11101111000000,  // Laura
    0b01111111100000,  // Theresa
    0b10111111000000,  // Brenda
    0b00111010000000,  // Charlotte
    0b00101101000000,  // Frances
    0b00001111000000,  // Eleanor
    0b00000101100000,  // Pearl
    0b00001011100000,  // Ruth
    0b00000011100100,  // Verne
    0b00000001110100,  // Myra
    0b00000001110111,  // Katherina
    0b00000011110111,  // Sylvia
    0b00000110111111,  // Nora
    0b00000011011100,  // Helen
    0b00000001100000,  // Dorothy
    0b00000000101000,  // Olivia
    0b00000000101000,  // Flora
};

}  // namespace

std::unique_ptr<Topology> make_social(int size) {
  check_size(size, "social is a network of exactly 32 workers",
             [](int number) { return number == kWomen + kEvents; });
  std::vector<Edge> edges;
  for (int woman = 0; woman < kWomen; ++woman) {
    for (int event = 0; event < kEvents; ++event) {
      if ((kAttended[woman] >> (kEvents - 1 - event)) & 1) edges.push_back({woman, kWomen + event});
    }
  }
  const std::vector<int> degree = degrees(size, edges);
  std::vector<WeightedEdge> weighted;
  for (const Edge& edge : edges) {
    weighted.push_back({edge.a, edge.b, 1.0 / std::max(degree[edge.a], degree[edge.b])});
  }
  return std::make_unique<EdgeGraph>("social", size, weighted);
}

}  // namespace cohort::topology
