// Each algorithm against its equations, written once more with dense matrices in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "topology/mixing.h"
#include "world.h"

namespace cohort::gossip {
namespace {

using Vector = std::vector<double>;
using Vectors = std::vector<Vector>;  // by rank

Vector tensorwise(const Vector& x,
                  const std::function<void(std::span<const double>, std::span<double>)>& q) {
  Vector out(x.size());
  for (const Range& range : test_tensors(static_cast<std::int64_t>(x.size()))) {
    const auto begin = static_cast<std::size_t>(range.begin);
    const auto size = static_cast<std::size_t>(range.size);
    q(std::span(x).subspan(begin, size), std::span(out).subspan(begin, size));
  }
  return out;
}

Vector reference_compress(const std::string& name, double ratio, const Vector& x) {
  if (name == "none") return x;
  if (name == "sign") {
    return tensorwise(x, [](auto in, auto out) {
      double sum = 0;
      for (const double v : in) sum += std::abs(v);
      for (std::size_t i = 0; i < in.size(); ++i) {
        out[i] = (in[i] < 0 ? -1 : 1) * sum / static_cast<double>(in.size());
      }
    });
  }
  return tensorwise(x, [ratio](auto in, auto out) {  // top-k
    const std::size_t k = std::max<std::size_t>(
        1, in.size() * (100 - static_cast<std::size_t>(std::lround(100 * ratio))) / 100);
    std::vector<std::size_t> order(in.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(in[a]) > std::abs(in[b]);
    });
    for (std::size_t i = 0; i < k; ++i) out[order[i]] = in[order[i]];
  });
}

Vector operator+(const Vector& a, const Vector& b) {
  Vector c(a);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] += b[i];
  return c;
}
Vector operator*(double s, const Vector& a) {
  Vector c(a);
  for (double& v : c) v *= s;
  return c;
}
Vector operator-(const Vector& a, const Vector& b) { return a + (-1.0 * b); }

Vectors mixed(const topology::Matrix& w, const Vectors& x) {
  Vectors out(x.size(), Vector(x[0].size()));
  for (int i = 0; i < w.size; ++i) {
    for (int j = 0; j < w.size; ++j) out[i] = out[i] + w.at(i, j) * x[j];
  }
  return out;
}

// The state of all ranks, one step at a time, from the papers' equations.
struct Reference {
  WorldOptions options;
  topology::Matrix w{1};
  Vectors x, hat, error;
  int t = 0;

  Vector q(const Vector& v) const {
    return reference_compress(options.compressor, options.ratio, v);
  }

  void step(const Vectors& moves, const topology::Matrix& now) {  // moves: -eta m
    const std::size_t n = x.size();
    ++t;
    const std::string& name = options.algorithm;
    if (name == "d-psgd") {
      Vectors next = options.mix_first ? mixed(now, x) : x;
      for (std::size_t i = 0; i < n; ++i) next[i] = next[i] + moves[i];
      x = options.mix_first ? next : mixed(now, next);
    } else if (name == "choco") {
      const Vectors s = mixed(now, hat);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = x[i] + moves[i] + options.stepsize * (s[i] - hat[i]);
      }
      for (std::size_t i = 0; i < n; ++i) hat[i] = hat[i] + q(x[i] - hat[i]);
    } else if (name == "dcd") {
      const Vectors s = mixed(now, x);
      for (std::size_t i = 0; i < n; ++i) x[i] = x[i] + q(s[i] + moves[i] - x[i]);
    } else if (name == "ecd") {
      const Vectors s = mixed(now, hat);
      for (std::size_t i = 0; i < n; ++i) {
        const Vector next = s[i] + moves[i];
        const Vector sent = q((1 - t / 2.0) * x[i] + (t / 2.0) * next);
        for (std::size_t c = 0; c < sent.size(); ++c) {
          if (options.compressor == "top-k" && sent[c] == 0) continue;
          hat[i][c] = (1 - 2.0 / t) * hat[i][c] + (2.0 / t) * sent[c];
        }
        x[i] = next;
      }
    } else {
      Vectors c(n);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = x[i] + moves[i];
        const Vector v = x[i] + error[i];
        c[i] = q(v);
        error[i] = v - c[i];
      }
      const Vectors s = mixed(now, c);
      for (std::size_t i = 0; i < n; ++i) x[i] = x[i] + options.stepsize * (s[i] - c[i]);
    }
  }
};

Vector move_of(Rank rank, int step, const Vector& x) {
  RandomStream random(7, "move",
                      {static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step)});
  Vector move(x.size());
  // A pull towards an own target, and noise.
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double target = std::sin(static_cast<double>(i) + rank);
    move[i] = -0.05 * (x[i] - target) + 0.01 * random.normal();
  }
  return move;
}

Vector wide(const std::vector<float>& x) { return {x.begin(), x.end()}; }

double distance(const Vectors& a, const std::vector<std::vector<float>>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t c = 0; c < a[i].size(); ++c) {
      most = std::max(most, std::abs(a[i][c] - static_cast<double>(b[i][c])));
    }
  }
  return most;
}

void compare(const WorldOptions& options, int steps, double tolerance) {
  SCOPED_TRACE(options.algorithm + " " + options.topology + " " + options.compressor +
               (options.mix_first ? "" : " stepping first"));
  World world(options);
  RandomStream random(1, "initial");
  for (std::int64_t c = 0; c < options.numel; ++c) {
    const auto value = static_cast<float>(random.normal());
    for (auto& x : world.x) x[static_cast<std::size_t>(c)] = value;
  }
  Reference reference{options, topology::Matrix(1), {}, {}, {}};
  for (const auto& x : world.x) reference.x.push_back(wide(x));
  reference.hat = reference.x;
  if (options.estimates_from_zero) reference.hat.assign(reference.x.size(), Vector(options.numel));
  reference.error.assign(reference.x.size(), Vector(reference.x[0].size()));
  world.start();
  for (int step = 0; step < steps; ++step) {
    Vectors moves;
    for (int i = 0; i < options.size; ++i) {
      moves.push_back(move_of(i, step, wide(world.x[i])));
      for (std::size_t c = 0; c < moves[i].size(); ++c) {
        world.x[i][c] = static_cast<float>(static_cast<double>(world.x[i][c]) + moves[i][c]);
      }
    }
    // What mixes now came in the round before, when mixing first.
    const bool before = options.algorithm == "d-psgd" && options.mix_first;
    if (before && step == 0) {
      reference.step(moves,
                     topology::mixing_matrix(world.topology(), 0));  // all equal: any will do
    } else {
      reference.step(moves, topology::mixing_matrix(world.topology(), before ? step - 1 : step));
    }
    ASSERT_TRUE(world.round());
    ASSERT_LT(distance(reference.x, world.x), tolerance) << "in step " << step;
  }
}

TEST(Algorithms, FollowTheirEquationsWithoutCompression) {
  for (const auto& entry : gossip_algorithms().entries()) {
    for (const char* topology : {"ring", "complete", "torus", "exponential"}) {
      WorldOptions options{.algorithm = entry.name, .topology = topology, .stepsize = 0.7};
      compare(options, 30, entry.name == "ecd" ? 1e-3 : 1e-4);
      options.mix_first = false;
      if (entry.name == "d-psgd") compare(options, 30, 1e-4);
    }
  }
}

TEST(Algorithms, FollowTheirEquationsWithCompression) {
  for (const char* name : {"choco", "dcd", "deep-squeeze"}) {
    for (const char* compressor : {"sign", "top-k"}) {
      compare({.algorithm = name, .compressor = compressor, .ratio = 0.8, .stepsize = 0.2}, 25,
              1e-3);
    }
  }
  for (const char* compressor : {"none", "sign", "top-k"}) {
    compare({.algorithm = "choco",
             .compressor = compressor,
             .ratio = 0.8,
             .stepsize = 0.2,
             .estimates_from_zero = true},
            25, 1e-3);
  }
  compare({.algorithm = "ecd", .compressor = "top-k", .ratio = 0.5}, 6, 1e-3);
}

TEST(Algorithms, ThoseThatForgetWorkOnGraphsThatChange) {
  for (const char* name : {"d-psgd", "deep-squeeze"}) {
    compare({.algorithm = name, .topology = "one-peer-exponential", .mix_first = false}, 20, 1e-4);
  }
  for (const char* name : {"choco", "dcd", "ecd"}) {
    EXPECT_THROW(World({.algorithm = name, .topology = "one-peer-exponential"}), ConfigError);
  }
}

double mean_of(const World& world, std::size_t c) {
  double sum = 0;
  for (const auto& x : world.x) sum += static_cast<double>(x[c]);
  return sum / static_cast<double>(world.x.size());
}

void scatter(World& world) {
  for (std::size_t i = 0; i < world.x.size(); ++i) {
    RandomStream random(2, "scatter", {i});
    for (float& value : world.x[i]) value = static_cast<float>(random.normal());
  }
}

TEST(Algorithms, UncompressedChocoOnACompleteGraphAveragesExactly) {
  World world({.algorithm = "choco", .topology = "complete", .stepsize = 1});
  world.start();
  scatter(world);
  std::vector<double> means;
  for (std::size_t c = 0; c < world.x[0].size(); ++c) means.push_back(mean_of(world, c));
  ASSERT_TRUE(world.round());
  ASSERT_TRUE(world.round());
  for (const auto& x : world.x) {
    for (std::size_t c = 0; c < x.size(); ++c) EXPECT_NEAR(x[c], means[c], 1e-6);
  }
}

TEST(Algorithms, PreserveTheMean) {
  const std::map<std::string, std::vector<std::string>> suitable = {
      {"choco", {"none", "sign", "top-k", "random-k", "qsgd", "fp16", "bf16"}},
      {"d-psgd", {"none", "fp16", "bf16"}},
      {"deep-squeeze", {"none", "sign", "top-k", "random-k", "qsgd"}},
  };
  for (const auto& [algorithm, compressors] : suitable) {
    for (const std::string& compressor : compressors) {
      for (const char* topology : {"ring", "torus", "star", "complete", "exponential"}) {
        SCOPED_TRACE(algorithm + " " + compressor + " " + topology);
        World world({.algorithm = algorithm,
                     .topology = topology,
                     .compressor = compressor,
                     .stepsize = 0.1});
        world.start();
        scatter(world);
        for (int i = 0; i < 20; ++i) {
          std::vector<double> before;
          for (std::size_t c = 0; c < world.x[0].size(); ++c) before.push_back(mean_of(world, c));
          ASSERT_TRUE(world.round());
          for (std::size_t c = 0; c < before.size(); ++c) {
            ASSERT_NEAR(mean_of(world, c), before[c], 1e-6) << c;
          }
        }
      }
    }
  }
}

TEST(Algorithms, ChocoReachesConsensusWithEveryCompressor) {
  for (const auto& entry : compressors::compressors().entries()) {
    SCOPED_TRACE(entry.name);
    const bool sparse = entry.name == "top-k" || entry.name == "random-k";
    World world({.algorithm = "choco", .compressor = entry.name, .stepsize = sparse ? 0.04 : 0.2});
    world.start();
    scatter(world);
    const auto spread = [&] {
      double sum = 0;
      for (const auto& x : world.x) {
        for (std::size_t c = 0; c < x.size(); ++c) {
          sum += std::pow(static_cast<double>(x[c]) - mean_of(world, c), 2);
        }
      }
      return std::sqrt(sum);
    };
    const double before = spread();
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(world.round());
    EXPECT_LT(spread(), 0.05 * before);
  }
}

TEST(Algorithms, DcdAndDeepSqueezeWithoutCompressionAreDPsgd) {
  const auto run = [](const char* algorithm, bool mix_first) {
    World world({.algorithm = algorithm, .stepsize = 1, .mix_first = mix_first});
    world.start();
    for (int step = 0; step < 20; ++step) {
      for (int i = 0; i < 8; ++i) {
        const Vector move = move_of(i, step, wide(world.x[i]));
        for (std::size_t c = 0; c < move.size(); ++c) {
          world.x[i][c] += static_cast<float>(move[c]);
        }
      }
      EXPECT_TRUE(world.round());
    }
    return world.x;
  };
  const auto mixing = run("d-psgd", true);
  const auto stepping = run("d-psgd", false);
  const auto dcd = run("dcd", true);
  const auto squeeze = run("deep-squeeze", true);
  for (std::size_t i = 0; i < dcd.size(); ++i) {
    for (std::size_t c = 0; c < dcd[i].size(); ++c) {
      EXPECT_NEAR(dcd[i][c], mixing[i][c], 1e-5);
      EXPECT_NEAR(squeeze[i][c], stepping[i][c], 1e-5);
    }
  }
}

TEST(Algorithms, DPsgdRefusesWhatWouldAddItsErrorForEver) {
  for (const char* compressor : {"sign", "top-k", "random-k", "qsgd"}) {
    EXPECT_THROW(World({.algorithm = "d-psgd", .compressor = compressor}), ConfigError);
  }
}

}  // namespace
}  // namespace cohort::gossip
