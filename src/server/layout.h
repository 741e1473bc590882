// Which server keeps which part of the model.
//
// A model's tensors are cut into blocks, blocks are dealt to servers, and each server keeps its
// blocks one after another in an arena of its own, in the order of the workers' arenas (last layer
// first), so that what a worker's backward pass finishes first is first in every server's arena.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace cohort::server {

enum class Sharding {
  kWhole,   // whole tensors by turns, in the model's order; the count of updates took server 0's
            // turn
  kSliced,  // Paddle's: tensors cut for all servers, at least kMinBlock elements each, rows whole
  kHash,    // whole tensors, by a hash of the name
};
// "whole", "sliced", "hash". Throws ConfigError listing them.
Sharding parse_sharding(std::string_view name);

inline constexpr std::int64_t kMinBlock = 8192;

// A tensor in a worker's arena.
struct ShardTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  Range range;  // in the arena
  double weight_decay = 0;
};

struct Block {
  std::string name;  // "conv1.weight" or "conv1.weight.block2"
  Range range;       // in the worker's arena
  int server = 0;
  std::int64_t place = 0;  // in the server's arena
  double weight_decay = 0;
};

struct Layout {
  std::vector<Block> blocks;        // by server, then by place
  std::vector<std::int64_t> sizes;  // elements of each server's arena; a server may get none

  std::vector<Block> of_server(int server) const;
};

// `tensors` in the arena's order, which is the reverse of the model's. servers >= 1.
Layout shard(std::span<const ShardTensor> tensors, int servers, Sharding sharding);

}  // namespace cohort::server
