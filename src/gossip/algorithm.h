// One rank's side of a gossip algorithm over flat vectors: parameters in, messages out.
//
// No connections, no clocks, no threads: node.h puts rounds, frames and lost neighbours around it,
// and whoever owns the node carries the frames. In a round every rank takes part:
//
//   x <- the parameters after the rank's own optimizer steps since the last round
//   advance(x, round, message)     uses what earlier rounds brought; the message is for everybody
//   receive(neighbour, ...)        once for each neighbour, ascending by rank
//   conclude(x)                    the round is over
//
// Between advance() and conclude() the caller may compute its next gradient on x, unless
// answers_before_gradient(): only advance() and conclude() touch x. With w_ij the weights of the
// round, w_ii what is left of 1, eta m the optimizer's step and Q the compressor, tensor by tensor.
//
// All arithmetic on estimates uses what was decoded from the wire, on the sender too, so that
// sender and receivers have the same numbers. Vectors are those of a GossipVectors, which does all
// arithmetic; `x` is one that it can take. One object per rank, used from one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compressors/model_codec.h"
#include "core/registry.h"
#include "core/types.h"
#include "gossip/vectors.h"
#include "topology/topology.h"

namespace cohort::gossip {

// What a message belongs to, known to both sides.
struct GossipRound {
  std::uint64_t number = 0;  // counted from 1
  double given = 0;          // sum of the neighbours' weights: what a rank does not keep of its own
};

// Of an algorithm that remembers something of its neighbours, which must then stay the same ones.
// It can be told anew: forget_neighbours(), then take_estimate() for each. Estimates that come and
// go here are in main memory.
class NeighbourMemory {
 public:
  virtual ~NeighbourMemory() = default;

  // Instead of start(), for a rank that comes later, in the place of another with these parameters,
  // of whom the others believe `estimate`: it will be told of its neighbours by take_estimate().
  virtual void enter(std::span<const float> x, std::span<const float> estimate) = 0;

  virtual std::vector<float> own_estimate() const = 0;  // what the others believe of this rank
  virtual void forget_neighbours() = 0;
  virtual void take_estimate(const topology::Neighbour& of, std::span<const float> estimate) = 0;
};

class GossipAlgorithm {
 public:
  // A vector that a checkpoint must hold.
  struct State {
    std::string name;
    std::span<float> values;
  };

  virtual ~GossipAlgorithm() = default;

  // Before the first round: all ranks have the same x, in which the codec's tensors lie.
  virtual void start(std::span<const float> x) = 0;

  // Replaces the content of `message`.
  virtual void advance(std::span<float> x, const GossipRound& round, Bytes& message) = 0;

  // Throws PeerError when the message cannot be one.
  virtual void receive(const topology::Neighbour& from, const GossipRound& round,
                       std::span<const std::byte> message) = 0;

  virtual void conclude(std::span<float> x) = 0;

  // The next gradient is to be computed on what conclude() leaves.
  virtual bool answers_before_gradient() const = 0;

  // Null: it remembers nothing of its neighbours.
  virtual NeighbourMemory* memory() { return nullptr; }

  // Empty before start().
  virtual std::vector<State> state() = 0;
};

struct GossipOptions {
  Rank rank = 0;
  std::int64_t numel = 0;
  std::shared_ptr<compressors::ModelCodec> codec = nullptr;
  std::shared_ptr<GossipVectors> vectors = nullptr;  // null: those of the codec, in main memory
  double stepsize = 1;                               // gamma, in (0, 1]
  bool estimates_from_zero = false;  // choco: not from the model that all begin with
  bool mix_first = true;             // d-psgd: mix, then step (hides the exchange)
  std::vector<topology::Neighbour> neighbours = {};  // for those who remember something of each
};

// Throws ConfigError when the algorithm makes no sense with the compressor, or the step size is
// out of range.
std::shared_ptr<GossipVectors> vectors_of(const GossipOptions& options);
using GossipRegistry = Registry<GossipAlgorithm, const GossipOptions&>;
const GossipRegistry& gossip_algorithms();

}  // namespace cohort::gossip
