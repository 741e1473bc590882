#include "topology/edge_list.h"

#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/text.h"
#include "topology/edge_graph.h"
#include "topology/sizes.h"

namespace cohort::topology {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr double kRounding = 1e-12;

struct Line {
  WeightedEdge edge;  // weight 0: none given
  int number = 0;
};

class Parser {
 public:
  Parser(int size, const std::string& file) : size_(size), file_(file) {}

  void line(std::string_view text) {
    ++number_;
    std::istringstream words{std::string(text.substr(0, text.find('#')))};
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.empty()) return;
    if (fields.size() < 2 || fields.size() > 3) {
      refuse("a line is `i j` or `i j weight`, not " + std::to_string(fields.size()) + " words");
    }
    WeightedEdge edge{rank(fields[0]), rank(fields[1]), 0};
    if (edge.a == edge.b) refuse("rank " + fields[0] + " cannot be its own neighbour");
    if (fields.size() == 3) edge.weight = weight(fields[2]);
    if (edge.a > edge.b) std::swap(edge.a, edge.b);
    add(edge);
  }

  std::vector<WeightedEdge> weighted() const {
    std::vector<Edge> plain;
    std::vector<WeightedEdge> edges;
    for (const auto& [edge, line] : lines_) {
      plain.push_back(edge);
      edges.push_back(line.edge);
    }
    const Rank lost = unreachable_rank(size_, plain);
    if (lost >= 0) {
      throw ConfigError(file_ + ": the graph is not connected: no way leads from rank 0 to rank " +
                        std::to_string(lost) + "; add an edge between their parts");
    }
    if (edges.empty() || edges.front().weight == 0) return metropolis(size_, plain);
    check_sums(edges);
    return edges;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw ConfigError(file_ + ":" + std::to_string(number_) + ": " + why);
  }

  Rank rank(const std::string& word) const {
    Rank value = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 0 || value >= size_) {
      refuse("'" + word + "' is no rank from 0 to " + std::to_string(size_ - 1));
    }
    return value;
  }

  double weight(const std::string& word) const {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !(value > 0 && value <= 1)) {
      refuse("'" + word + "' is no weight above 0 and up to 1");
    }
    return value;
  }

  void add(const WeightedEdge& edge) {
    const auto [place, is_new] = lines_.try_emplace(Edge{edge.a, edge.b}, Line{edge, number_});
    if (!is_new) {
      const Line& first = place->second;
      const std::string pair = std::to_string(edge.a) + " " + std::to_string(edge.b);
      const std::string where = "line " + std::to_string(first.number);
      if (first.edge.weight != edge.weight) {
        refuse("edge " + pair + " has another weight than in " + where +
               ": it counts in both directions, give it once");
      }
      refuse("edge " + pair + " stands already in " + where);
    }
    const bool has_weight = edge.weight > 0;
    if (!weighted_) weighted_ = has_weight;
    if (*weighted_ != has_weight) {
      refuse(has_weight ? "a weight here but not on the lines before; give all or none"
                        : "no weight here but on the lines before; give all or none");
    }
  }

  void check_sums(const std::vector<WeightedEdge>& edges) const {
    std::vector<double> sum(size_);
    for (const WeightedEdge& edge : edges) {
      sum[edge.a] += edge.weight;
      sum[edge.b] += edge.weight;
    }
    bool somebody_keeps = false;
    for (Rank rank = 0; rank < size_; ++rank) {
      if (sum[rank] > 1 + kRounding) {
        throw ConfigError(file_ + ":" + std::to_string(last_line_of(rank)) +
                          ": the weights of rank " + std::to_string(rank) + " sum to " +
                          std::to_string(sum[rank]) +
                          "; lower them to at most 1, or leave all weights out");
      }
      if (sum[rank] < 1 - kRounding) somebody_keeps = true;
    }
    if (!somebody_keeps && has_two_sides(edges)) {
      throw ConfigError(file_ +
                        ": with these weights two halves of the ranks swap their values "
                        "forever; lower a weight, so that a rank keeps some of its own");
    }
  }

  int last_line_of(Rank rank) const {
    int last = 0;
    for (const auto& [edge, line] : lines_) {
      if (edge.a == rank || edge.b == rank) last = std::max(last, line.number);
    }
    return last;
  }

  // Whether every edge leads from one half to the other. The graph is connected.
  bool has_two_sides(const std::vector<WeightedEdge>& edges) const {
    std::vector<std::vector<Rank>> beside(size_);
    for (const WeightedEdge& edge : edges) {
      beside[edge.a].push_back(edge.b);
      beside[edge.b].push_back(edge.a);
    }
    std::vector<int> side(size_, -1);
    side[0] = 0;
    for (std::vector<Rank> open = {0}; !open.empty();) {
      const Rank rank = open.back();
      open.pop_back();
      for (const Rank other : beside[rank]) {
        if (side[other] == side[rank]) return false;
        if (side[other] < 0) open.push_back(other);
        side[other] = 1 - side[rank];
      }
    }
    return true;
  }

  int size_;
  const std::string& file_;
  int number_ = 0;
  std::map<Edge, Line> lines_;
  std::optional<bool> weighted_;
};

}  // namespace

std::unique_ptr<Topology> parse_edge_list(int size, std::string_view text,
                                          const std::string& file) {
  check_size(size);
  Parser parser(size, file);
  for (const std::string& line : split(text, '\n')) parser.line(line);
  return std::make_unique<EdgeGraph>("edges", size, parser.weighted());
}

std::unique_ptr<Topology> make_edge_list(int size, const std::string& file) {
  check_size(size);
  if (file.empty()) {
    throw ConfigError("topology edges needs the file of its edges: lines `i j` or `i j weight`");
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> block;
  while (text.size() <= kMaxBytes && stream.read(block.data(), block.size()).gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.is_open() || stream.bad()) throw FileError("cannot read the edges in " + file);
  if (text.size() > kMaxBytes) throw FileError(file + " is too large for a list of edges");
  return parse_edge_list(size, text, file);
}

}  // namespace cohort::topology
