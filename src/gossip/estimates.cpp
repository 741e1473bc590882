#include "gossip/estimates.h"

#include <algorithm>

#include "gossip/vectors.h"

namespace cohort {

Estimates::Estimates(Rank rank, std::int64_t numel, std::shared_ptr<ModelCodec> codec)
    : rank_(rank),
      codec_(std::move(codec)),
      own_(static_cast<std::size_t>(numel)),
      pull_(own_.size()),
      difference_(own_.size()) {}

void Estimates::start(std::span<const float> own) {
  std::copy(own.begin(), own.end(), own_.begin());
  std::fill(pull_.begin(), pull_.end(), 0.0F);
}

void Estimates::send(std::span<const float> x, const GossipRound& round, Bytes& message) {
  subtract(difference_, x, own_);
  codec_->encode(difference_, rank_, round.number, message);
  codec_->decode_add(message, rank_, round.number, 1.0F, own_);
  codec_->decode_add(message, rank_, round.number, -static_cast<float>(round.given), pull_);
}

void Estimates::receive(const Neighbour& from, const GossipRound& round,
                        std::span<const std::byte> message) {
  codec_->decode_add(message, from.rank, round.number, static_cast<float>(from.weight), pull_);
}

void Estimates::forget_neighbours() { std::fill(pull_.begin(), pull_.end(), 0.0F); }

void Estimates::take_estimate(const Neighbour& of, std::span<const float> estimate) {
  const auto weight = static_cast<float>(of.weight);
  for (std::size_t i = 0; i < pull_.size(); ++i) pull_[i] += weight * (estimate[i] - own_[i]);
}

std::vector<GossipAlgorithm::State> Estimates::state() {
  return {{"estimate", own_}, {"pull", pull_}};
}

}  // namespace cohort
