#include "gossip/choco.h"

#include "gossip/estimates.h"

namespace cohort::gossip {
namespace {

class Choco final : public EstimatingAlgorithm {
 public:
  explicit Choco(const GossipOptions& options)
      : EstimatingAlgorithm(options),
        stepsize_(static_cast<float>(options.stepsize)),
        from_zero_(options.estimates_from_zero) {}

  void start(std::span<const float> x) override {
    EstimatingAlgorithm::start(x);
    if (from_zero_) estimates().start_from_zero();
  }

  void advance(std::span<float> x, const GossipRound& round, Bytes& message) override {
    vectors().combine(x, 1.0F, x, stepsize_, estimates().pull());
    estimates().send(x, round, message);
  }

 private:
  float stepsize_;
  bool from_zero_;
};

}  // namespace

std::unique_ptr<GossipAlgorithm> make_choco(const GossipOptions& options) {
  return std::make_unique<Choco>(options);
}

}  // namespace cohort::gossip
