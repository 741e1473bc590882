#include "compressors/model_codec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"

namespace cohort::compressors {
namespace {

template <class Span>
Span part(Span model, const Range& tensor) {
  return model.subspan(static_cast<std::size_t>(tensor.begin),
                       static_cast<std::size_t>(tensor.size));
}

}  // namespace

ModelCodec::ModelCodec(std::unique_ptr<Compressor> compressor, std::vector<Range> tensors)
    : compressor_(std::move(compressor)), tensors_(std::move(tensors)) {
  std::int64_t end = 0;
  for (const Range& tensor : tensors_) {
    COHORT_CHECK(tensor.begin == end && tensor.size >= 0, "tensors do not follow each other");
    end = tensor.end();
    max_encoded_bytes_ += compressor_->max_encoded_bytes(tensor.size);
  }
  numel_ = static_cast<std::size_t>(end);
}

void ModelCodec::encode(std::span<const float> model, Rank sender, std::uint64_t sequence,
                        Bytes& wire) {
  COHORT_CHECK(model.size() == numel_, "the vector to encode has another length than the model");
  wire.clear();
  wire.reserve(max_encoded_bytes_);
  MessageKey key{sender, sequence, 0};
  for (const Range& tensor : tensors_) {
    compressor_->encode(part(model, tensor), key, wire);
    ++key.tensor;
  }
}

template <class Take>
void ModelCodec::walk(std::span<const std::byte> wire, MessageKey key, std::span<float> model,
                      Take&& take) const {
  COHORT_CHECK(model.size() == numel_, "the vector to decode to has another length than the model");
  const auto message = [&] {
    return "message " + std::to_string(key.sequence) + " of rank " + std::to_string(key.sender);
  };
  for (const Range& tensor : tensors_) {
    try {
      wire = wire.subspan(take(wire, key, part(model, tensor)));
    } catch (const PeerError& error) {
      throw PeerError(message() + ", tensor " + std::to_string(key.tensor) + ": " + error.what());
    }
    ++key.tensor;
  }
  if (!wire.empty()) {
    throw PeerError(message() + " has " + std::to_string(wire.size()) +
                    " bytes more than the model takes");
  }
}

void ModelCodec::decode(std::span<const std::byte> wire, Rank sender, std::uint64_t sequence,
                        std::span<float> model) const {
  walk(wire, {sender, sequence, 0}, model, [&](auto bytes, const MessageKey& key, auto tensor) {
    return compressor_->decode(bytes, key, tensor);
  });
}

void ModelCodec::decode_add(std::span<const std::byte> wire, Rank sender, std::uint64_t sequence,
                            float weight, std::span<float> model) const {
  walk(wire, {sender, sequence, 0}, model, [&](auto bytes, const MessageKey& key, auto tensor) {
    return compressor_->decode_add(bytes, key, weight, tensor);
  });
}

double ModelCodec::contraction() const {
  double least = 1;
  for (const Range& tensor : tensors_) {
    least = std::min(least, compressor_->contraction(tensor.size));
  }
  return least;
}

}  // namespace cohort::compressors
