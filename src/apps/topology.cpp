#include "topology/topology.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "core/error.h"
#include "core/text.h"
#include "report/graph_drawing.h"
#include "report/picture.h"
#include "topology/mixing.h"
#include "topology/registry.h"
#include "topology/summary.h"
#include "topology/torus.h"

namespace cohort::apps {
namespace {

constexpr int kMaxRowsPrinted = 16;
constexpr std::size_t kMaxNeighboursPrinted = 6;

struct TopologyFlags {
  std::string name;
  topology::TopologyOptions options;
  std::string svg;
  std::string png;
  bool json = false;
};

double kept_by(const std::vector<topology::Neighbour>& neighbours) {
  double kept = 1;
  for (const topology::Neighbour& neighbour : neighbours) kept -= neighbour.weight;
  return std::max(kept, 0.0);  // rounding may leave -1e-17
}

nlohmann::json step_as_json(const topology::Topology& topology, Step step) {
  nlohmann::json ranks = nlohmann::json::array();
  for (Rank rank = 0; rank < topology.size(); ++rank) {
    const std::vector<topology::Neighbour> neighbours = topology.neighbours(rank, step);
    nlohmann::json heard = nlohmann::json::array();
    for (const topology::Neighbour& each : neighbours) {
      heard.push_back({{"rank", each.rank}, {"weight", each.weight}});
    }
    ranks.push_back({{"rank", rank},
                     {"kept", kept_by(neighbours)},
                     {"neighbours", std::move(heard)},
                     {"receivers", topology.receivers(rank, step)}});
  }
  return ranks;
}

nlohmann::json as_json(const topology::Topology& topology,
                       const topology::TopologySummary& summary) {
  nlohmann::json document = {{"topology", topology.name()},
                             {"workers", summary.ranks},
                             {"changes", topology.changes()},
                             {"period", summary.period},
                             {"edges", summary.edges},
                             {"degree",
                              {{"least", summary.least_degree},
                               {"mean", summary.mean_degree},
                               {"most", summary.most_degree}}},
                             {"spectral_gap", nullptr},
                             {"steps_to_a_tenth", nullptr},
                             {"laplacian_norm", nullptr}};
  if (summary.gap) {
    document["spectral_gap"] = *summary.gap;
    document["steps_to_a_tenth"] = topology::steps_to_shrink(10, *summary.gap, summary.period);
  }
  if (summary.laplacian_norm) document["laplacian_norm"] = *summary.laplacian_norm;
  for (Step step = 0; step < summary.period; ++step) {
    document["steps"].push_back(step_as_json(topology, step));
  }
  return document;
}

std::string workers(int count) {
  return count == 1 ? "1 worker" : fmt::format("{} workers", count);
}

std::string degree_text(const topology::TopologySummary& summary) {
  if (summary.least_degree == summary.most_degree) {
    return summary.most_degree == 1 ? "1 neighbour each"
                                    : fmt::format("{} neighbours each", summary.most_degree);
  }
  return fmt::format("{} to {} neighbours, {:.2f} on average", summary.least_degree,
                     summary.most_degree, summary.mean_degree);
}

std::string gap_text(const topology::TopologySummary& summary) {
  if (!summary.gap) return fmt::format("not computed above {} workers", topology::kMaxForSpectrum);
  return fmt::format("{:.4f}{}", *summary.gap,
                     summary.period == 1
                         ? ""
                         : fmt::format(" (of {} steps together, 1 - sigma_2)", summary.period));
}

void print_weights(const topology::Topology& topology, Step step) {
  fmt::print("  {:>4}  {:>6}  {}\n", "rank", "keeps", "of its neighbours");
  const int shown = topology.size() <= kMaxRowsPrinted ? topology.size() : kMaxRowsPrinted / 2;
  for (Rank rank = 0; rank < shown; ++rank) {
    const std::vector<topology::Neighbour> neighbours = topology.neighbours(rank, step);
    std::vector<std::string> parts;
    for (const topology::Neighbour& each : neighbours) {
      if (parts.size() == kMaxNeighboursPrinted) break;
      parts.push_back(fmt::format("{}: {:.4f}", each.rank, each.weight));
    }
    if (neighbours.size() > parts.size()) {
      parts.push_back(fmt::format("... {} more", neighbours.size() - parts.size()));
    }
    fmt::print("  {:>4}  {:.4f}  {}\n", rank, kept_by(neighbours), join(parts, "  "));
  }
  if (shown < topology.size()) {
    fmt::print("   ...  {} more; --json has them all\n", topology.size() - shown);
  }
}

void print_text(const topology::Topology& topology, const topology::TopologySummary& summary) {
  fmt::print("{} of {}\n", topology.name(), workers(summary.ranks));
  const std::string remark = topology::remark_on(std::string(topology.name()), topology.size());
  if (!remark.empty()) fmt::print("  note            {}\n", remark);
  fmt::print("  edges           {}\n", summary.edges);
  fmt::print("  degree          {}{}\n", degree_text(summary),
             topology.changes() ? " at a step" : "");
  if (topology.changes()) fmt::print("  changes         every step, period {}\n", summary.period);
  fmt::print("  spectral gap    {}\n", gap_text(summary));
  if (summary.gap) {
    for (const auto& [factor, name] : {std::pair{10.0, "a tenth"}, {1e6, "a millionth"}}) {
      const double steps = topology::steps_to_shrink(factor, *summary.gap, summary.period);
      fmt::print("  to {:<12} {:.0f} step{} at most\n", name, steps, steps == 1 ? "" : "s");
    }
  }
  if (summary.laplacian_norm) fmt::print("  ||I - W||       {:.4f}\n", *summary.laplacian_norm);
  constexpr Step kMaxStepsPrinted = 4;
  for (Step step = 0; step < std::min(summary.period, kMaxStepsPrinted); ++step) {
    fmt::print("{}\n", topology.changes() ? fmt::format("weights of step {}", step) : "weights");
    print_weights(topology, step);
  }
}

report::GraphLayout layout_of(const topology::Topology& topology) {
  const std::string_view name = topology.name();
  if (name == "star") return report::GraphLayout::kWheel;
  if (name == "torus") {
    // One row is a ring, and looks best as one.
    const bool is_ring = topology::torus_columns(topology.size()) == topology.size();
    return is_ring ? report::GraphLayout::kCircle : report::GraphLayout::kGrid;
  }
  for (const char* round :
       {"complete", "ring", "expander", "exponential", "one-peer-exponential"}) {
    if (name == round) return report::GraphLayout::kCircle;
  }
  return report::GraphLayout::kFree;
}

report::GraphPicture picture_of(const topology::Topology& topology,
                                const topology::TopologySummary& summary) {
  report::GraphPicture picture;
  picture.title = fmt::format("{} of {}", topology.name(), workers(summary.ranks));
  picture.subtitle = fmt::format("{} edges, ", summary.edges);
  if (summary.least_degree < summary.most_degree) {
    picture.subtitle += fmt::format("{} to ", summary.least_degree);
  }
  picture.subtitle +=
      fmt::format("{} neighbour{}", summary.most_degree, summary.most_degree == 1 ? "" : "s");
  if (summary.gap) picture.subtitle += fmt::format(", spectral gap {:.4f}", *summary.gap);
  picture.nodes = topology.size();
  picture.directed = topology.changes();
  picture.layout = layout_of(topology);
  if (picture.layout == report::GraphLayout::kGrid)
    picture.columns = topology::torus_columns(topology.size());
  for (Step step = 0; step < summary.period; ++step) {
    if (topology.changes()) picture.groups.push_back(fmt::format("step {}", step));
    for (Rank rank = 0; rank < topology.size(); ++rank) {
      for (const topology::Neighbour& from : topology.neighbours(rank, step)) {
        if (!topology.changes() && from.rank > rank) continue;
        picture.links.push_back({from.rank, rank, from.weight, static_cast<int>(step)});
      }
    }
  }
  return picture;
}

void check_ending(const std::string& flag, const std::string& path, const std::string& ending) {
  if (path.empty()) return;
  if (!path.ends_with(ending)) {
    throw ConfigError(flag + ": end the name of '" + path + "' in " + ending);
  }
  report::check_picture_path(path);
}

void run_topology(const TopologyFlags& flags) {
  check_ending("--svg", flags.svg, ".svg");
  check_ending("--png", flags.png, ".png");
  const std::unique_ptr<topology::Topology> topology =
      topology::topologies().make(flags.name, flags.options);
  const topology::TopologySummary summary = topology::summarise(*topology);
  if (flags.json) {
    fmt::print("{}\n", as_json(*topology, summary).dump(2));
  } else {
    print_text(*topology, summary);
  }
  if (flags.svg.empty() && flags.png.empty()) return;
  const report::GraphPicture picture = picture_of(*topology, summary);
  for (const std::string& path : {flags.svg, flags.png}) {
    if (path.empty()) continue;
    report::write_graph_picture(picture, path);
    fmt::print(stderr, "drawn in {}\n", path);
  }
}

}  // namespace

void add_topology(CLI::App& program, Invocation&) {
  CLI::App* command = program.add_subcommand(
      "topology", "Degrees, weights and spectral gap of a graph of workers; draws it");
  auto flags = std::make_shared<TopologyFlags>();
  command->add_option("name", flags->name, "which: " + join(topology::topologies().names(), ", "))
      ->required();
  command->add_option("-n,--workers", flags->options.size, "how many workers")->required();
  command->add_option("--seed", flags->options.seed, "of graphs drawn at random")
      ->capture_default_str();
  command->add_option("--degree", flags->options.degree,
                      "neighbours of each worker, for random-regular [3, or what fits]");
  command->add_option("--edges", flags->options.file,
                      "file for edges: lines `i j` or `i j weight`, # for comments");
  command->add_option("--svg", flags->svg, "draw it in this file");
  command->add_option("--png", flags->png, "likewise");
  command->add_flag("--json", flags->json, "all of it as JSON, with every weight");
  command->callback([flags] { run_topology(*flags); });
}

}  // namespace cohort::apps
