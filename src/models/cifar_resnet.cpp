#include "models/cifar_resnet.h"

#include <string>
#include <utility>

#include "models/initializers.h"
#include "models/option_checks.h"
#include "models/residual_block.h"

namespace cohort::models {

namespace {

ResidualBlockOptions block_for(int depth) {
  return {.bottleneck = depth >= 44, .convolution_initializer = kaiming_normal_fan_out()};
}

class CifarResNet final : public Model {
 public:
  CifarResNet(const ModelOptions& options, at::Generator generator, int depth)
      : Model(std::move(generator)),
        conv1_(Scope(store()) / "conv1", options.channels, 16, 3,
               {.padding = 1, .bias = false, .weight_initializer = kaiming_normal_fan_out()}),
        bn1_(Scope(store()) / "bn1", 16),
        stages_(make_stages(Scope(store()), depth)),
        fc_(Scope(store()) / "fc", ResidualBlock::out_channels(64, block_for(depth)),
            options.classes) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    return fc_(global_average(stages_(bn1_.relu(conv1_(inputs)))));
  }

 private:
  static Sequential make_stages(const Scope& scope, int depth) {
    const ResidualBlockOptions block = block_for(depth);
    const std::int64_t blocks = (depth - 2) / 6;
    std::int64_t channels = 16;
    return {residual_stage(scope / "layer1", channels, 16, blocks, 1, block),
            residual_stage(scope / "layer2", channels, 32, blocks, 2, block),
            residual_stage(scope / "layer3", channels, 64, blocks, 2, block)};
  }

  Conv2d conv1_;
  BatchNorm2d bn1_;
  Sequential stages_;
  Linear fc_;
};

}  // namespace

std::unique_ptr<Model> make_cifar_resnet(const ModelOptions& options, at::Generator generator,
                                         int depth) {
  check_options("resnet" + std::to_string(depth), options);
  return std::make_unique<CifarResNet>(options, std::move(generator), depth);
}

}  // namespace cohort::models
