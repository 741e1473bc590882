#include "models/resnet.h"

#include <array>
#include <utility>

#include "core/error.h"
#include "models/initializers.h"
#include "models/option_checks.h"
#include "models/residual_block.h"

namespace cohort::models {

namespace {

struct Plan {
  std::string_view name;
  std::array<std::int64_t, 4> blocks;
  ResidualBlockOptions block;
  bool small_stem = false;  // for images that cannot be made four times smaller at once
};

Plan plan_of(ResNetVariant variant) {
  const Initializer kaiming = kaiming_normal_fan_out();
  const ResidualBlockOptions basic = {.convolution_initializer = kaiming};
  const ResidualBlockOptions bottleneck = {.bottleneck = true, .convolution_initializer = kaiming};
  ResidualBlockOptions grouped = bottleneck;
  grouped.groups = 32;
  grouped.base_width = 4;
  switch (variant) {
    case ResNetVariant::kResNet18:
      return {"resnet18", {2, 2, 2, 2}, basic};
    case ResNetVariant::kResNet18Cifar:
      return {"resnet18-cifar", {2, 2, 2, 2}, basic, /*small_stem=*/true};
    case ResNetVariant::kResNet34:
      return {"resnet34", {3, 4, 6, 3}, basic};
    case ResNetVariant::kResNet50:
      return {"resnet50", {3, 4, 6, 3}, bottleneck};
    case ResNetVariant::kResNet101:
      return {"resnet101", {3, 4, 23, 3}, bottleneck};
    case ResNetVariant::kResNet152:
      return {"resnet152", {3, 8, 36, 3}, bottleneck};
    case ResNetVariant::kResNeXt50:
      return {"resnext50_32x4d", {3, 4, 6, 3}, grouped};
    case ResNetVariant::kWideResNet50: {
      ResidualBlockOptions wide = bottleneck;
      wide.base_width = 128;
      return {"wide_resnet50_2", {3, 4, 6, 3}, wide};
    }
    case ResNetVariant::kSeResNeXt50:
      grouped.squeeze_excitation = 16;
      return {"se_resnext50_32x4d", {3, 4, 6, 3}, grouped};
    case ResNetVariant::kDistResNet50: {
      ResidualBlockOptions shortcuts = bottleneck;
      shortcuts.last_norm_weight = 0;
      return {"dist_resnet50", {3, 4, 6, 3}, shortcuts};
    }
  }
  COHORT_CHECK(false, "unhandled ResNet variant");
  return {};
}

class ResNet final : public Model {
 public:
  ResNet(const ModelOptions& options, at::Generator generator, const Plan& plan)
      : Model(std::move(generator)),
        small_stem_(plan.small_stem),
        conv1_(Scope(store()) / "conv1", options.channels, 64, small_stem_ ? 3 : 7,
               {.stride = small_stem_ ? 1 : 2,
                .padding = small_stem_ ? 1 : 3,
                .bias = false,
                .weight_initializer = plan.block.convolution_initializer}),
        bn1_(Scope(store()) / "bn1", 64),
        stages_(make_stages(Scope(store()), plan)),
        fc_(Scope(store()) / "fc", ResidualBlock::out_channels(512, plan.block), options.classes) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    if (small_stem_) {
      return fc_(global_average(stages_(bn1_.relu(conv1_(inputs)))));
    }
    // ReLU after the pooling gives the same values and gradients for a quarter of the work.
    const at::Tensor stem =
        relu_in_place(max_pool(bn1_(conv1_(inputs)), 3, {.stride = 2, .padding = 1}));
    return fc_(global_average(stages_(stem)));
  }

 private:
  static Sequential make_stages(const Scope& scope, const Plan& plan) {
    Sequential stages;
    std::int64_t channels = 64;
    for (std::size_t index = 0; index < plan.blocks.size(); ++index) {
      stages.add(residual_stage(scope / ("layer" + std::to_string(index + 1)), channels,
                                std::int64_t{64} << index, plan.blocks[index], index == 0 ? 1 : 2,
                                plan.block));
    }
    return stages;
  }

  bool small_stem_;
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Sequential stages_;
  Linear fc_;
};

}  // namespace

std::unique_ptr<Model> make_resnet(const ModelOptions& options, at::Generator generator,
                                   ResNetVariant variant) {
  const Plan plan = plan_of(variant);
  check_options(plan.name, options);
  return std::make_unique<ResNet>(options, std::move(generator), plan);
}

}  // namespace cohort::models
