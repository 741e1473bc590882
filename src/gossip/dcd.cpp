#include "gossip/dcd.h"

#include "gossip/estimates.h"

namespace cohort::gossip {
namespace {

class Dcd final : public EstimatingAlgorithm {
 public:
  using EstimatingAlgorithm::EstimatingAlgorithm;

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    vectors().combine(x, 1.0F, x, 1.0F, estimates().pull());
    estimates().send(x, round, message);
    vectors().copy(estimates().own(), x);
  }
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_dcd(const GossipOptions& options) {
  return std::make_unique<Dcd>(options);
}

}  // namespace cohort::gossip
