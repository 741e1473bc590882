#include "server/layout.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.h"
#include "core/text.h"

namespace cohort::server {
namespace {

// FNV-1a: the same on every machine and in every version of the library.
std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// Elements of a block of a tensor, as Paddle's slice_variable has it.
std::int64_t block_size(const ShardTensor& tensor, int servers) {
  const std::int64_t numel = tensor.range.size;
  const std::int64_t split =
      std::min<std::int64_t>(servers, std::max<std::int64_t>(1, numel / kMinBlock));
  std::int64_t block = divided_up(numel, split);
  if (tensor.shape.size() >= 2) {
    const std::int64_t row = std::accumulate(tensor.shape.begin() + 1, tensor.shape.end(),
                                             std::int64_t{1}, std::multiplies<>());
    if (row > 0) block = divided_up(block, row) * row;
  }
  return std::min(block, numel);
}

void cut(const ShardTensor& tensor, std::int64_t block, std::vector<Block>& out) {
  const std::int64_t parts = divided_up(tensor.range.size, block);
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = part * block;
    out.push_back(
        {.name = parts == 1 ? tensor.name : tensor.name + ".block" + std::to_string(part),
         .range = {tensor.range.begin + begin, std::min(block, tensor.range.size - begin)},
         .server = 0,
         .place = 0,
         .weight_decay = tensor.weight_decay});
  }
}

}  // namespace

Sharding parse_sharding(std::string_view name) {
  const std::array<std::string, 3> known = {"whole", "sliced", "hash"};
  if (name == "whole") return Sharding::kWhole;
  if (name == "sliced") return Sharding::kSliced;
  if (name == "hash") return Sharding::kHash;
  throw ConfigError(unknown_name("sharding", name, known));
}

std::vector<Block> Layout::of_server(int server) const {
  std::vector<Block> own;
  for (const Block& block : blocks) {
    if (block.server == server) own.push_back(block);
  }
  return own;
}

Layout shard(std::span<const ShardTensor> tensors, int servers, Sharding sharding) {
  COHORT_CHECK(servers >= 1, "there is at least one server");
  const auto count = static_cast<std::size_t>(servers);
  Layout layout{.blocks = {}, .sizes = std::vector<std::int64_t>(count)};
  // TensorFlow deals variables in the order of their making; the first one counts the updates.
  std::size_t turn = sharding == Sharding::kWhole ? 1 : 0;
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
    if (tensor->range.size == 0) continue;
    const std::size_t first = layout.blocks.size();
    cut(*tensor, sharding == Sharding::kSliced ? block_size(*tensor, servers) : tensor->range.size,
        layout.blocks);
    for (std::size_t i = first; i < layout.blocks.size(); ++i) {
      const std::size_t server =
          sharding == Sharding::kHash ? name_hash(tensor->name) % count : turn++ % count;
      layout.blocks[i].server = static_cast<int>(server);
    }
  }
  std::sort(layout.blocks.begin(), layout.blocks.end(), [](const Block& a, const Block& b) {
    return a.server != b.server ? a.server < b.server : a.range.begin < b.range.begin;
  });
  for (Block& block : layout.blocks) {
    std::int64_t& size = layout.sizes[static_cast<std::size_t>(block.server)];
    block.place = size;
    size += block.range.size;
  }
  return layout;
}

}  // namespace cohort::server
