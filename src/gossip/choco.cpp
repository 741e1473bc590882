#include "gossip/choco.h"

#include "gossip/estimates.h"
#include "gossip/vectors.h"

namespace cohort {
namespace {

class Choco final : public EstimatingAlgorithm {
 public:
  explicit Choco(const GossipOptions& options)
      : EstimatingAlgorithm(options), stepsize_(static_cast<float>(options.stepsize)) {}

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    add_scaled(x, stepsize_, estimates().pull());
    estimates().send(x, round, message);
  }

 private:
  float stepsize_;
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_choco(const GossipOptions& options) {
  return std::make_unique<Choco>(options);
}

}  // namespace cohort
