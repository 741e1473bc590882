// Models that a link has been lent and not sent yet: sending one copies nothing.
#pragma once

#include <span>
#include <vector>

#include "network/link.h"
#include "swamp/verdict.h"

namespace cohort::swamp {

class LentModels {
 public:
  // As Link::send(); with an owner the payload, which lies in that model, is lent.
  void send(network::Link& link, const network::FrameHeader& header,
            std::span<const std::byte> payload, const ModelValues& owner) {
    if (owner && (models_.empty() || models_.back() != owner)) {
      release(link);
      models_.push_back(owner);
    }
    link.send(header, payload, owner ? network::Kept::kLent : network::Kept::kCopy);
  }

  // Gives them up if the link has sent them all.
  void release(const network::Link& link) {
    if (link.unsent() == 0) models_.clear();
  }

 private:
  std::vector<ModelValues> models_;
};

}  // namespace cohort::swamp
