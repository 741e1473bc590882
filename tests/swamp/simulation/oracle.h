// What must be true, whatever happens. It knows the frames, the disk and what was examined, and
// nothing of how the server works.
//
// A model's values say who made it: its quality, and a number that no other model has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "swamp/best_model_server.h"

namespace cohort::swamp::simulation {

class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kValues = 33'000;  // two pieces
inline constexpr std::size_t kSamples = 4;

ModelValues make_model(float quality, std::uint64_t mark);
float quality_of(const std::vector<float>& model);
std::uint64_t mark_of(std::span<const float> model);
// What the examiner finds: the quality, but for a fresh draw's noise.
std::vector<float> losses_of(const std::vector<float>& model, std::uint64_t draw);

class Oracle {
 public:
  // `faultless`: nothing will go wrong, so the last word is the last.
  Oracle(const SwampSpec& spec, bool keeps_state, bool faultless)
      : spec_(spec), keeps_state_(keeps_state), faultless_(faultless) {}

  void server_started(std::uint64_t version);
  void offered(std::uint64_t mark, float quality, bool sound);
  void examined(std::uint64_t mark);
  void accepted(const BestRecord& best);
  // The server lets a version be known, by a verdict or with a model. `disk`: what a crash now
  // would leave.
  void sent(std::uint64_t version, const std::optional<SwampSnapshot>& disk);
  // A worker learns which model that is.
  void told(std::uint64_t version, std::uint64_t mark);
  void judged(std::uint64_t mark, const OfferVerdict& verdict);
  // The last word to a worker: a version (0: none), and then that model.
  void sent_as_final(std::uint64_t version);
  void sent_as_final(const std::vector<float>& model);
  // Its worker has lost its place, and may bring it once more under another incarnation.
  void fenced(std::uint64_t mark) {
    ++again_[mark];
    fenced_.insert(mark);
  }

 private:
  void require(bool condition, const std::string& what) const {
    if (!condition) throw Violation(what);
  }

  struct Offer {
    float quality = 0;
    bool sound = true;
    int verdicts = 0;
  };

  SwampSpec spec_;
  bool keeps_state_;
  bool faultless_;
  bool final_sent_ = false;
  std::uint64_t newest_ = 0;                       // version that anybody was told of
  std::uint64_t version_ = 0;                      // of the server that lives
  std::map<std::uint64_t, std::uint64_t> models_;  // mark of each version that was told
  std::map<std::uint64_t, Offer> offers_;          // by mark
  std::set<std::uint64_t> examined_;               // in this life of the server
  std::map<std::uint64_t, int> again_;  // how often, since its worker has lost its place so often
  std::set<std::uint64_t> fenced_;      // likewise, and for ever
  std::set<std::uint64_t> accepted_;    // by a server that has told somebody, or could have
  float best_rejected_ = 1e9F;
};

}  // namespace cohort::swamp::simulation
