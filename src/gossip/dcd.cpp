#include "gossip/dcd.h"

#include <algorithm>

#include "gossip/estimates.h"
#include "gossip/vectors.h"

namespace cohort {
namespace {

class Dcd final : public EstimatingAlgorithm {
 public:
  using EstimatingAlgorithm::EstimatingAlgorithm;

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    add_scaled(x, 1.0F, estimates().pull());
    estimates().send(x, round, message);
    std::copy(estimates().own_estimate().begin(), estimates().own_estimate().end(), x.begin());
  }
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_dcd(const GossipOptions& options) {
  return std::make_unique<Dcd>(options);
}

}  // namespace cohort
