#include "gossip/stepsize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "core/error.h"
#include "core/random.h"
#include "gossip/arithmetic.h"

namespace cohort::gossip {
namespace {

// Below it, float32 has nothing more to say about which gamma is better.
constexpr double kEqual = 1e-10;
// How many times further apart than without any mixing counts as lost.
constexpr double kLost = 30;
constexpr std::size_t kPushes = 1 << 16;

struct Setting {
  compressors::Compressor& compressor;
  StepsizeSearch search;
  std::vector<std::vector<topology::Neighbour>> neighbours;
  std::vector<float> start;   // of all workers, one after the other
  std::vector<float> pushes;  // Gaussian; each push is a stretch of them
  double start_distance = 0;

  std::size_t dimension() const { return static_cast<std::size_t>(search.dimension); }
  std::size_t workers() const { return neighbours.size(); }
  bool is_tracking() const { return search.goal == StepsizeGoal::kTracking; }
};

double squared_distance_to_mean(std::span<const float> vectors, std::size_t dimension) {
  const std::size_t workers = vectors.size() / dimension;
  std::vector<double> mean(dimension);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const std::span<const float> own = vectors.subspan(worker * dimension, dimension);
    for (std::size_t i = 0; i < dimension; ++i) mean[i] += own[i];
  }
  for (double& value : mean) value /= static_cast<double>(workers);
  double squares = 0;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const std::span<const float> own = vectors.subspan(worker * dimension, dimension);
    for (std::size_t i = 0; i < dimension; ++i) squares += (own[i] - mean[i]) * (own[i] - mean[i]);
  }
  return squares;
}

void start_apart(Setting& setting, RandomStream& random) {
  const std::size_t dimension = setting.dimension();
  std::vector<double> mean(dimension);
  for (std::size_t i = 0; i < setting.start.size(); ++i) {
    setting.start[i] = static_cast<float>(random.normal());
    mean[i % dimension] += setting.start[i];
  }
  // With a mean of 0 the vectors themselves shrink, and float32 can follow them for as long as we
  // like. Consensus does not know where 0 is, so nothing else changes.
  for (std::size_t i = 0; i < setting.start.size(); ++i) {
    setting.start[i] -=
        static_cast<float>(mean[i % dimension] / static_cast<double>(setting.workers()));
  }
  setting.start_distance = std::sqrt(squared_distance_to_mean(setting.start, dimension));
}

Setting setting_of(const topology::Topology& topology, compressors::Compressor& compressor,
                   const StepsizeSearch& search) {
  Setting setting{
      .compressor = compressor, .search = search, .neighbours = {}, .start = {}, .pushes = {}};
  for (Rank rank = 0; rank < topology.size(); ++rank) {
    setting.neighbours.push_back(topology.neighbours(rank, 0));
  }
  setting.start.resize(setting.dimension() * setting.workers());
  RandomStream random(search.seed, "stepsize");
  if (setting.is_tracking()) {
    // Drawing every push anew would take longer than all the rest.
    setting.pushes.resize(kPushes + setting.dimension());
    for (float& value : setting.pushes) value = static_cast<float>(random.normal());
  } else {
    start_apart(setting, random);
  }
  return setting;
}

// One gamma's simulation; can be continued.
class Simulation {
 public:
  Simulation(const Setting& setting, double gamma)
      : setting_(&setting), x_(setting.start), hat_(setting.start.size()) {
    trial_.gamma = gamma;
  }

  const StepsizeTrial& trial() const { return trial_; }

  void continue_to(int iterations) {
    const int middle = iterations / 2;  // what lies before it is still on its way
    squares_ = 0;
    measurements_ = 0;
    while (trial_.iterations < iterations && !is_done()) {
      push();
      exchange();
      const int now = ++trial_.iterations;
      // Measuring costs about as much as an exchange.
      if (now == iterations || now % 8 == 0 || (!setting_->is_tracking() && now <= 16)) {
        measure(now > middle);
      }
    }
    trial_.finished =
        !trial_.diverged && (trial_.iterations >= setting_->search.iterations || is_done());
  }

 private:
  bool is_done() const {
    const bool are_equal =
        !setting_->is_tracking() && trial_.iterations > 0 && trial_.error < kEqual;
    return trial_.diverged || are_equal;
  }

  std::span<float> of(std::vector<float>& vectors, std::size_t worker) {
    return std::span(vectors).subspan(worker * setting_->dimension(), setting_->dimension());
  }

  void push() {
    if (!setting_->is_tracking()) return;
    const auto iteration = static_cast<std::uint64_t>(trial_.iterations);
    for (std::size_t worker = 0; worker < setting_->workers(); ++worker) {
      const std::size_t from =
          derive_seed(setting_->search.seed, "push", {iteration, worker}) % kPushes;
      add_scaled(of(x_, worker), 1,
                 std::span(setting_->pushes).subspan(from, setting_->dimension()));
    }
  }

  void exchange() {
    for (std::size_t worker = 0; worker < setting_->workers(); ++worker) {
      double given = 0;
      for (const topology::Neighbour& neighbour : setting_->neighbours[worker]) {
        add_scaled(of(x_, worker), static_cast<float>(trial_.gamma * neighbour.weight),
                   of(hat_, neighbour.rank));
        given += neighbour.weight;
      }
      add_scaled(of(x_, worker), static_cast<float>(-trial_.gamma * given), of(hat_, worker));
    }
    difference_.resize(setting_->dimension());
    for (std::size_t worker = 0; worker < setting_->workers(); ++worker) {
      const compressors::MessageKey key{.sender = static_cast<Rank>(worker),
                                        .sequence = static_cast<std::uint64_t>(trial_.iterations),
                                        .tensor = 0};
      subtract(difference_, of(x_, worker), of(hat_, worker));
      wire_.clear();
      setting_->compressor.encode(difference_, key, wire_);
      setting_->compressor.decode_add(wire_, key, 1.0F, of(hat_, worker));
    }
  }

  void measure(bool counts) {
    const double squares = squared_distance_to_mean(x_, setting_->dimension());
    if (setting_->is_tracking()) {
      const double a_value = squares / static_cast<double>(x_.size());
      // Left alone, a value's variance would be the number of pushes.
      trial_.diverged = !(a_value < kLost * kLost * trial_.iterations);  // also NaN
      if (counts) squares_ += a_value;
      if (counts) ++measurements_;
      if (measurements_ > 0) trial_.error = std::sqrt(squares_ / measurements_);
    } else {
      trial_.error = std::sqrt(squares) / setting_->start_distance;
      trial_.diverged = !(trial_.error < kLost);
      trial_.rate = std::pow(std::max(trial_.error, 1e-30), 1.0 / trial_.iterations);
    }
    if (trial_.diverged) trial_.error = std::numeric_limits<double>::infinity();
  }

  const Setting* setting_;
  StepsizeTrial trial_;
  std::vector<float> x_;
  std::vector<float> hat_;
  std::vector<float> difference_;
  Bytes wire_;
  double squares_ = 0;  // of measurements_ distances
  int measurements_ = 0;
};

bool is_better(const StepsizeTrial& a, const StepsizeTrial& b) {
  if (a.diverged != b.diverged) return b.diverged;
  // Those that became equal did so after different numbers of iterations: the rate says which was
  // faster. While tracking, rates are 0.
  if (a.rate != b.rate) return a.rate < b.rate;
  return a.error != b.error ? a.error < b.error : a.gamma > b.gamma;
}

// Successive halving: all go on to `part` of the iterations, the best `left` of them further.
std::vector<StepsizeTrial> try_grid(const Setting& setting, const StepsizeSearch& search) {
  std::vector<Simulation> running;
  for (int i = 0; i < search.grid; ++i) {
    const double share = search.grid == 1 ? 1 : i / (search.grid - 1.0);
    running.emplace_back(setting, std::pow(search.smallest, 1 - share));
  }
  std::vector<StepsizeTrial> given_up;
  for (const int part : {8, 4, 2, 1}) {
    for (Simulation& each : running) each.continue_to(std::max(search.iterations / part, 1));
    std::stable_sort(running.begin(), running.end(), [](const Simulation& a, const Simulation& b) {
      return is_better(a.trial(), b.trial());
    });
    const std::size_t left = part == 1 ? 0 : std::min(running.size(), running.size() / 2 + 1);
    while (running.size() > left) {
      given_up.push_back(running.back().trial());
      running.pop_back();
    }
  }
  return given_up;
}

// A few iterations flatter: what is easy to mix is mixed first, and drifting apart takes time. So
// only those that went all the way are compared.
const StepsizeTrial& best_of(const std::vector<StepsizeTrial>& tried) {
  return *std::min_element(tried.begin(), tried.end(),
                           [](const StepsizeTrial& a, const StepsizeTrial& b) {
                             return a.finished != b.finished ? a.finished : is_better(a, b);
                           });
}

// Golden section on log gamma between the grid's neighbours of its best.
void refine(const Setting& setting, const StepsizeSearch& search,
            std::vector<StepsizeTrial>& tried) {
  const StepsizeTrial best = best_of(tried);
  double low = best.gamma;
  double high = best.gamma;
  for (const StepsizeTrial& each : tried) {
    if (each.gamma < best.gamma) low = low == best.gamma ? each.gamma : std::max(low, each.gamma);
    if (each.gamma > best.gamma)
      high = high == best.gamma ? each.gamma : std::min(high, each.gamma);
  }
  const auto attempt = [&](double logarithm) {
    Simulation simulation(setting, std::min(std::exp(logarithm), 1.0));
    simulation.continue_to(search.iterations);
    tried.push_back(simulation.trial());
    return simulation.trial();
  };
  constexpr double kGolden = 0.6180339887498949;
  double from = std::log(low);
  double to = std::log(high);
  if (!(to > from) || search.refinements < 2) return;
  double left = to - kGolden * (to - from);
  double right = from + kGolden * (to - from);
  StepsizeTrial at_left = attempt(left);
  StepsizeTrial at_right = attempt(right);
  for (int i = 2; i < search.refinements; ++i) {
    if (is_better(at_left, at_right)) {
      to = right;
      right = left;
      at_right = at_left;
      left = to - kGolden * (to - from);
      at_left = attempt(left);
    } else {
      from = left;
      left = right;
      at_left = at_right;
      right = from + kGolden * (to - from);
      at_right = attempt(right);
    }
  }
}

void check(const topology::Topology& topology, const StepsizeSearch& search) {
  if (topology.changes()) {
    throw ConfigError("the consensus step size is for graphs that stay the same, and " +
                      std::string(topology.name()) + " changes at every step; take exponential");
  }
  const auto at_least_one = [](int value, const char* what) {
    if (value < 1) {
      throw ConfigError(std::string("the search for a step size needs at least 1 ") + what +
                        ", not " + std::to_string(value));
    }
  };
  at_least_one(search.dimension, "element");
  at_least_one(search.iterations, "iteration");
  at_least_one(search.grid, "step size to try");
  if (!(search.smallest > 0 && search.smallest <= 1)) {
    throw ConfigError("the smallest step size to try must be above 0 and at most 1, not " +
                      std::to_string(search.smallest));
  }
}

}  // namespace

double theoretical_stepsize(const topology::Matrix& mixing, double delta) {
  const double rho = topology::spectral_gap(mixing);
  const double beta_squared = topology::laplacian_norm(mixing) * topology::laplacian_norm(mixing);
  return rho * rho * delta /
         (16 * rho + rho * rho + 4 * beta_squared + 2 * rho * beta_squared - 8 * rho * delta);
}

StepsizeResult tune_stepsize(const topology::Topology& topology,
                             compressors::Compressor& compressor, const StepsizeSearch& search) {
  check(topology, search);
  if (topology.size() == 1) return {.gamma = 1, .error = 0, .rate = 0, .tried = {}};
  const Setting setting = setting_of(topology, compressor, search);
  StepsizeResult result;
  result.tried = try_grid(setting, search);
  refine(setting, search, result.tried);
  const StepsizeTrial best = best_of(result.tried);
  const bool comes_closer = search.goal == StepsizeGoal::kTracking || best.error < 1;
  if (best.finished && comes_closer) {
    result.gamma = best.gamma;
    result.error = best.error;
    result.rate = best.rate;
  }
  std::sort(result.tried.begin(), result.tried.end(),
            [](const StepsizeTrial& a, const StepsizeTrial& b) { return a.gamma < b.gamma; });
  return result;
}

}  // namespace cohort::gossip
