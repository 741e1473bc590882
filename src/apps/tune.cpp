#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "apps/command.h"
#include "compressors/registry.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/text.h"
#include "gossip/stepsize.h"
#include "topology/registry.h"
#include "topology/summary.h"

namespace cohort::apps {
namespace {

struct TuneFlags {
  std::string topology = "ring";
  topology::TopologyOptions graph;
  std::string compressor;
  compressors::CompressorOptions compression;
  gossip::StepsizeSearch search;
  bool original = false;
  bool json = false;
};

struct Tuned {
  gossip::StepsizeResult found;
  std::optional<double> theory;  // none where the spectrum would take too long
  double contraction = 0;
  double seconds = 0;
};

std::string outcome(const gossip::StepsizeTrial& trial) {
  if (trial.diverged) return "diverged";
  if (!trial.finished) return "given up";
  return trial.rate > 0 ? fmt::format("x {:.5f} an iteration", trial.rate) : "";
}

std::string describe(const TuneFlags& flags) {
  std::string text = flags.compressor;
  const config::PartTraits& traits = compressors::compressors().find(flags.compressor).traits;
  if (traits.takes("compress-ratio")) {
    text += fmt::format(" that drops {}", flags.compression.ratio);
  }
  if (traits.takes("quantize-bits")) {
    text += fmt::format(" with {} bits", flags.compression.bits);
  }
  return text;
}

void print_text(const TuneFlags& flags, const Tuned& tuned) {
  fmt::print("consensus step size of {}, {} workers, {}, vectors of {} elements\n", flags.topology,
             flags.graph.size, describe(flags), flags.search.dimension);
  fmt::print("  {:>9}  {:>10}  {:>9}\n", "gamma", "iterations", "distance");
  for (const gossip::StepsizeTrial& trial : tuned.found.tried) {
    fmt::print("  {:>9.6f}  {:>10}  {:>9.3g}  {}{}\n", trial.gamma, trial.iterations, trial.error,
               outcome(trial), trial.gamma == tuned.found.gamma ? "  <- best" : "");
  }
  if (tuned.found.gamma == 0) return;
  fmt::print("best {:.4g}", tuned.found.gamma);
  if (tuned.theory) fmt::print(", proved to converge {:.4g}", *tuned.theory);
  fmt::print(", found in {:.2f} s\n", tuned.seconds);
}

nlohmann::json as_json(const TuneFlags& flags, const Tuned& tuned) {
  nlohmann::json tried = nlohmann::json::array();
  for (const gossip::StepsizeTrial& trial : tuned.found.tried) {
    nlohmann::json line = {{"gamma", trial.gamma},       {"iterations", trial.iterations},
                           {"error", nullptr},           {"rate", nullptr},
                           {"diverged", trial.diverged}, {"finished", trial.finished}};
    if (!trial.diverged) {  // JSON has no infinity
      line["error"] = trial.error;
      line["rate"] = trial.rate;
    }
    tried.push_back(std::move(line));
  }
  nlohmann::json document = {{"topology", flags.topology},
                             {"workers", flags.graph.size},
                             {"compressor", flags.compressor},
                             {"goal", flags.original ? "consensus" : "tracking"},
                             {"dimension", flags.search.dimension},
                             {"iterations", flags.search.iterations},
                             {"contraction", tuned.contraction},
                             {"gamma", tuned.found.gamma},
                             {"error", tuned.found.error},
                             {"rate", tuned.found.rate},
                             {"theory", nullptr},
                             {"seconds", tuned.seconds},
                             {"tried", std::move(tried)}};
  if (tuned.theory) document["theory"] = *tuned.theory;
  return document;
}

void run_tune(TuneFlags& flags) {
  flags.compression.seed = flags.search.seed;
  flags.graph.seed = flags.search.seed;
  const std::unique_ptr<topology::Topology> topology =
      topology::topologies().make(flags.topology, flags.graph);
  // As in training: right on average instead of contracting, its errors would grow for ever.
  flags.compression.biased = true;
  const std::unique_ptr<compressors::Compressor> compressor =
      compressors::compressors().make(flags.compressor, flags.compression);
  Tuned tuned;
  const auto start = Clock::now();
  tuned.found = gossip::tune_stepsize(*topology, *compressor, flags.search);
  tuned.seconds = seconds_between(start, Clock::now());
  tuned.contraction = compressor->contraction(flags.search.dimension);
  if (topology->size() <= topology::kMaxForSpectrum) {
    tuned.theory =
        gossip::theoretical_stepsize(topology::mixing_matrix(*topology, 0), tuned.contraction);
  }
  if (flags.json) {
    fmt::print("{}\n", as_json(flags, tuned).dump(2));
  } else {
    print_text(flags, tuned);
  }
  if (tuned.found.gamma == 0) {
    throw RunError(
        "the workers drift apart with every step size; compress less, or choose a graph with more "
        "edges");
  }
}

}  // namespace

void add_tune(CLI::App& program, Invocation&) {
  CLI::App* command = program.add_subcommand(
      "tune", "Find the consensus step size for a topology and a compressor");
  auto flags = std::make_shared<TuneFlags>();
  command->add_option("--topology", flags->topology, join(topology::topologies().names(), ", "))
      ->capture_default_str();
  command->add_option("-n,--workers", flags->graph.size, "how many workers")->required();
  command
      ->add_option("--compressor", flags->compressor,
                   join(compressors::compressors().names(), ", "))
      ->required();
  command
      ->add_option("--compress-ratio", flags->compression.ratio,
                   "share of the elements that top-k and random-k drop")
      ->capture_default_str();
  command->add_option("--quantize-bits", flags->compression.bits, "of qsgd")->capture_default_str();
  command->add_option("--degree", flags->graph.degree, "of random-regular [3, or what fits]");
  command->add_option("--edges", flags->graph.file, "file for edges");
  command
      ->add_option("--dimension", flags->search.dimension,
                   "elements of each worker's vector, compressed as one tensor")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  command->add_option("--iterations", flags->search.iterations, "exchanges for each step size")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--seed", flags->search.seed, "of vectors, compressor and graph")
      ->capture_default_str();
  command->add_flag("--original", flags->original,
                    "as the authors' tuner: no pushes, the workers start apart");
  command->add_flag("--json", flags->json, "as JSON");
  command->callback([flags] {
    if (flags->original) flags->search.goal = gossip::StepsizeGoal::kConsensus;
    run_tune(*flags);
  });
}

}  // namespace cohort::apps
