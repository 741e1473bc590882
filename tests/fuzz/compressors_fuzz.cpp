// Every decoder on any bytes: either PeerError, or finite values within the bounds promised, that
// decode_add() agrees with. Every encoder on any floats: what is finite comes back.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "compressors/model_codec.h"
#include "compressors/registry.h"
#include "input.h"

namespace cohort {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Whether the bytes were taken.
bool decode_any(const compressors::Compressor& compressor, const Bytes& wire,
                const compressors::MessageKey& key, std::size_t numel) {
  std::vector<float> values(numel);
  std::vector<float> sum(numel, 1.0F);
  try {
    const std::size_t used = compressor.decode(wire, key, values);
    require(used <= wire.size());
    require(used <= compressor.max_encoded_bytes(static_cast<std::int64_t>(numel)));
    require(compressor.decode_add(wire, key, 0.5F, sum) == used);
    for (std::size_t i = 0; i < numel; ++i) {
      require(std::isfinite(values[i]));
      const float product = 0.5F * values[i];
      require(sum[i] == 1.0F + product);
    }
    return true;
  } catch (const PeerError&) {
    return false;
  }
}

void encode_any(compressors::Compressor& compressor, const Bytes& bytes,
                const compressors::MessageKey& key) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  bool finite = true;
  for (const float value : values) finite = finite && std::isfinite(value);
  Bytes wire;
  compressor.encode(values, key, wire);
  require(wire.size() <= compressor.max_encoded_bytes(static_cast<std::int64_t>(values.size())));
  const bool taken = decode_any(compressor, wire, key, values.size());
  require(taken || !finite);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto names = compressors::compressors().names();
  compressors::CompressorOptions options;
  const std::string& name = names[input.byte() % names.size()];
  const std::uint8_t settings = input.byte();
  options.biased = (settings & 1) != 0;
  options.bits = 1 + (settings >> 1) % 16;
  constexpr double kRatios[] = {0.99, 0.9, 0.5, 0};
  options.ratio = kRatios[settings >> 6];
  const auto compressor = compressors::compressors().make(name, options);
  const compressors::MessageKey key{input.byte(), input.byte(), 0};
  const std::size_t numel = input.byte() | (input.byte() & 7) << 8;
  const bool encodes = (input.byte() & 1) != 0;
  const Bytes rest = input.bytes(size > 7 ? size - 7 : 0);
  if (encodes) {
    encode_any(*compressor, rest, key);
  } else {
    decode_any(*compressor, rest, key, numel);
  }
  return 0;
}

}  // namespace cohort
