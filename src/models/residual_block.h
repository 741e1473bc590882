// The residual blocks of ResNet (He et al., 2015) and its descendants.
#pragma once

#include <cstdint>
#include <optional>

#include "models/layers.h"

namespace cohort::models {

// Squeeze-and-excitation (Hu et al., 2018): each channel is scaled by a gate computed from the mean
// of every channel. Parameters "fc1" and "fc2", 1x1 convolutions as timm has them.
class SqueezeExcitation {
 public:
  SqueezeExcitation(const Scope& scope, std::int64_t channels, std::int64_t reduction,
                    const Initializer& weight_initializer);
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  Conv2d fc1_;
  Conv2d fc2_;
};

struct ResidualBlockOptions {
  bool bottleneck = false;  // 1x1, 3x3, 1x1 with four times `planes` outputs; else 3x3, 3x3
  std::int64_t groups = 1;
  std::int64_t base_width = 64;         // with groups, the 3x3's width (ResNeXt, wide ResNet)
  std::int64_t squeeze_excitation = 0;  // reduction factor; 0: none
  double last_norm_weight = 1.0;  // of the branch, at the start; 0: a block begins as its shortcut
  Initializer convolution_initializer = {};
};

// Names as in torchvision: conv1, bn1, ..., downsample.0, downsample.1 where the shape changes.
class ResidualBlock {
 public:
  ResidualBlock(const Scope& scope, std::int64_t in_channels, std::int64_t planes,
                std::int64_t stride, const ResidualBlockOptions& options);
  at::Tensor operator()(const at::Tensor& input) const;

  // Channels that a block with these planes gives.
  static std::int64_t out_channels(std::int64_t planes, const ResidualBlockOptions& options) {
    return options.bottleneck ? 4 * planes : planes;
  }

 private:
  Sequential branch_;  // up to the last convolution
  std::optional<BatchNorm2d> last_norm_;
  std::optional<SqueezeExcitation> gate_;
  Sequential shortcut_;  // empty: the identity
};

// `count` blocks called "0", "1", ...; the first one has the stride. Updates `channels` from the
// stage's input to its output.
Sequential residual_stage(const Scope& scope, std::int64_t& channels, std::int64_t planes,
                          std::int64_t count, std::int64_t stride,
                          const ResidualBlockOptions& options);

}  // namespace cohort::models
