#include "gossip/estimates.h"

#include <utility>

namespace cohort::gossip {

Estimates::Estimates(const GossipOptions& options, std::shared_ptr<GossipVectors> vectors)
    : rank_(options.rank),
      numel_(static_cast<std::size_t>(options.numel)),
      vectors_(std::move(vectors)),
      own_(vectors_->make()),
      pull_(vectors_->make()),
      difference_(vectors_->make()) {}

void Estimates::start(std::span<const float> own) {
  vectors_->copy(own, own_);
  vectors_->clear(pull_);
}

void Estimates::start_from_zero() {
  vectors_->clear(own_);
  vectors_->clear(pull_);
}

void Estimates::send(std::span<const float> x, const GossipRound& round, Bytes& message) {
  vectors_->combine(difference_, 1.0F, x, -1.0F, own_);
  vectors_->encode(difference_, rank_, round.number, message);
  vectors_->decode_add(message, rank_, round.number, 1.0F, own_);
  vectors_->decode_add(message, rank_, round.number, -static_cast<float>(round.given), pull_);
}

void Estimates::receive(const topology::Neighbour& from, const GossipRound& round,
                        std::span<const std::byte> message) {
  vectors_->decode_add(message, from.rank, round.number, static_cast<float>(from.weight), pull_);
}

std::vector<float> Estimates::own_estimate() const {
  std::vector<float> estimate(numel_);
  vectors_->copy(own_, estimate);
  return estimate;
}

void Estimates::forget_neighbours() { vectors_->clear(pull_); }

void Estimates::take_estimate(const topology::Neighbour& of, std::span<const float> estimate) {
  vectors_->copy(estimate, difference_);
  vectors_->combine(difference_, 1.0F, difference_, -1.0F, own_);
  vectors_->combine(pull_, 1.0F, pull_, static_cast<float>(of.weight), difference_);
}

std::vector<GossipAlgorithm::State> Estimates::state() {
  return {{"estimate", own_}, {"pull", pull_}};
}

}  // namespace cohort::gossip
