#include "topology/edge_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "topology/mixing.h"
#include "topology/ring.h"

namespace cohort::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(int size, const std::string& text) {
  try {
    parse_edge_list(size, text, "graph.txt");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "made";
}

TEST(EdgeList, WithoutWeightsHasThoseOfMetropolis) {
  const auto graph = parse_edge_list(4, "# a path\n0 1\n\n  2 1 # backwards\r\n2\t3", "graph.txt");
  EXPECT_EQ(graph->name(), "edges");
  EXPECT_THAT(graph->neighbours(0, 0), ElementsAre(Neighbour{1, 1.0 / 3}));
  EXPECT_THAT(graph->neighbours(1, 0), ElementsAre(Neighbour{0, 1.0 / 3}, Neighbour{2, 1.0 / 3}));
  EXPECT_THAT(graph->neighbours(3, 0), ElementsAre(Neighbour{2, 1.0 / 3}));
}

TEST(EdgeList, TakesTheWeightsGiven) {
  const auto graph = parse_edge_list(3, "0 1 0.5\n1 2 .25\n", "graph.txt");
  EXPECT_THAT(graph->neighbours(1, 0), ElementsAre(Neighbour{0, 0.5}, Neighbour{2, 0.25}));
  EXPECT_EQ(mixing_matrix(*graph, 0).at(2, 2), 0.75);
}

TEST(EdgeList, OfOneRankHasNoEdges) {
  EXPECT_TRUE(parse_edge_list(1, "# nobody\n", "graph.txt")->neighbours(0, 0).empty());
}

TEST(EdgeList, IsReadFromItsFile) {
  const std::string path = testing::TempDir() + "cohort-edges-" + std::to_string(::getpid());
  std::ofstream(path) << "0 1\n1 2\n2 3\n3 4\n4 0\n";
  const auto graph = make_edge_list(5, path);
  for (Rank rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(graph->neighbours(rank, 0), Ring(5).neighbours(rank, 0));
  }
  std::filesystem::remove(path);
  EXPECT_THROW(make_edge_list(5, path + ".missing"), FileError);
  EXPECT_THROW(make_edge_list(5, testing::TempDir()), Error);
  EXPECT_THROW(make_edge_list(5, ""), ConfigError);
}

TEST(EdgeList, RefusesWithFileAndLine) {
  EXPECT_EQ(refusal(3, "0 1\n1 1\n"), "graph.txt:2: rank 1 cannot be its own neighbour");
  EXPECT_EQ(refusal(3, "0 1\n\n1 3\n"), "graph.txt:3: '3' is no rank from 0 to 2");
  EXPECT_EQ(refusal(3, "0 -1\n"), "graph.txt:1: '-1' is no rank from 0 to 2");
  EXPECT_EQ(refusal(3, "0 99999999999\n"), "graph.txt:1: '99999999999' is no rank from 0 to 2");
  EXPECT_EQ(refusal(3, "0 1x\n"), "graph.txt:1: '1x' is no rank from 0 to 2");
  EXPECT_EQ(refusal(3, "0 1\n2 1\n1 0\n"), "graph.txt:3: edge 0 1 stands already in line 1");
  EXPECT_THAT(refusal(3, "0\n"), StartsWith("graph.txt:1: a line is"));
  EXPECT_THAT(refusal(3, "0 1 0.1 7\n"), StartsWith("graph.txt:1: a line is"));
  EXPECT_THAT(refusal(3, "0 1 0.3\n1 0 0.2\n"), StartsWith("graph.txt:2: edge 0 1 has another"));
  EXPECT_THAT(refusal(3, "0 1 0.3\n1 2\n"), StartsWith("graph.txt:2: no weight here"));
  EXPECT_THAT(refusal(3, "0 1\n1 2 0.3\n"), StartsWith("graph.txt:2: a weight here"));
  for (const char* weight : {"0", "-0.1", "1.5", "nan", "inf", "1e999", "x"}) {
    EXPECT_THAT(refusal(2, std::string("0 1 ") + weight), HasSubstr("is no weight")) << weight;
  }
}

TEST(EdgeList, RefusesGraphsThatCannotMix) {
  EXPECT_THAT(refusal(4, "0 1\n2 3\n"), HasSubstr("not connected"));
  EXPECT_THAT(refusal(4, "0 1\n2 3\n"), HasSubstr("to rank 2"));
  EXPECT_THAT(refusal(2, ""), HasSubstr("not connected"));
  EXPECT_THAT(refusal(3, "0 1 0.6\n1 2 0.6\n"), StartsWith("graph.txt:2: the weights of rank 1"));
  EXPECT_THAT(refusal(2, "0 1 1\n"), HasSubstr("swap their values forever"));
  EXPECT_THAT(refusal(4, "0 1 .5\n1 2 .5\n2 3 .5\n3 0 .5"), HasSubstr("swap their values"));
  // Three that pass everything on still mix, as their circle is odd.
  EXPECT_EQ(refusal(3, "0 1 .5\n1 2 .5\n2 0 .5"), "made");
}

TEST(EdgeList, SurvivesAnyBytes) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>((i * i * 31 + i) % 256);
  EXPECT_NE(refusal(3, text), "made");
  EXPECT_NE(refusal(3, std::string("0 1\0 2", 6)), "made");
}

}  // namespace
}  // namespace cohort::topology
