// Residual networks for ImageNet, as in torchvision: ResNet (He et al., 2015), ResNeXt (Xie et al.,
// 2017), wide ResNet (Zagoruyko and Komodakis, 2016) and ResNeXt with squeeze-and-excitation (Hu et
// al., 2018; names as in timm's seresnext50_32x4d). Images of any size.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

enum class ResNetVariant {
  kResNet18,
  kResNet18Cifar,  // its stem is one 3x3 convolution: for small images
  kResNet34,
  kResNet50,
  kResNet101,
  kResNet152,
  kResNeXt50,
  kWideResNet50,
  kSeResNeXt50,
  kDistResNet50,  // ResNet-50 whose blocks begin as their shortcuts (Goyal et al., 2017)
};

std::unique_ptr<Model> make_resnet(const ModelOptions& options, at::Generator generator,
                                   ResNetVariant variant);

}  // namespace cohort::models
