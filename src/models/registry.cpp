#include "models/registry.h"

#include <utility>

#include "models/alexnet.h"
#include "models/cifar_densenet.h"
#include "models/cifar_resnet.h"
#include "models/densenet.h"
#include "models/googlenet.h"
#include "models/lenet.h"
#include "models/lstm.h"
#include "models/mlp.h"
#include "models/mnistnet.h"
#include "models/mobilenet_v2.h"
#include "models/resnet.h"
#include "models/squeezenet.h"
#include "models/vgg.h"
#include "models/wide_resnet.h"

namespace cohort::models {

namespace {

// The factory of one variant of a family: `make` with its last arguments given.
template <auto make, auto... variant>
std::unique_ptr<Model> variant_of(const ModelOptions& options, at::Generator generator) {
  return make(options, std::move(generator), variant...);
}

template <ResNetVariant variant>
constexpr auto kResNet = variant_of<make_resnet, variant>;

}  // namespace

const ModelRegistry& models() {
  static const ModelRegistry registry(
      "model",
      {
          {"mlp-100", "784-100-10 with sigmoid, the TensorFlow MNIST example; 79,510 parameters",
           make_mlp_100},
          {"mlp-4096", "784-4096-4096-10 with ReLU; 20.0 M parameters", make_mlp_4096},
          {"lenet", "LeNet-5 for images from 28x28; 61,706 parameters", make_lenet},
          {"mnistnet", "two 5x5 convolutions, 500 hidden units; 431,080 parameters", make_mnistnet},
          {"cifar10net", "mnistnet's layers on 3x32x32; 657,080 parameters", make_cifar10net},
          {"resnet8", "ResNet for CIFAR, 8 layers; 78,042 parameters",
           variant_of<make_cifar_resnet, 8>},
          {"resnet20", "ResNet for CIFAR, 20 layers; 272,474 parameters",
           variant_of<make_cifar_resnet, 20>},
          {"resnet32", "ResNet for CIFAR, 32 layers; 466,906 parameters",
           variant_of<make_cifar_resnet, 32>},
          {"resnet44", "ResNet for CIFAR, 7 bottlenecks a stage",
           variant_of<make_cifar_resnet, 44>},
          {"resnet56", "ResNet for CIFAR, 9 bottlenecks a stage",
           variant_of<make_cifar_resnet, 56>},
          {"resnet110", "ResNet for CIFAR, 18 bottlenecks a stage",
           variant_of<make_cifar_resnet, 110>},
          {"wideresnet", "wide ResNet for CIFAR; depth 28 and widening 4 unless set",
           make_wide_resnet},
          {"densenet", "DenseNet for CIFAR; depth 40 and growth 12 unless set",
           make_cifar_densenet},
          {"resnet18", "ResNet for ImageNet, 18 layers; 11.7 M parameters",
           kResNet<ResNetVariant::kResNet18>},
          {"resnet18-cifar",
           "ResNet-18 for CIFAR: its stem is a 3x3 convolution; 11.2 M parameters",
           kResNet<ResNetVariant::kResNet18Cifar>},
          {"resnet34", "ResNet for ImageNet, 34 layers; 21.8 M parameters",
           kResNet<ResNetVariant::kResNet34>},
          {"resnet50", "ResNet for ImageNet, 50 layers; 25.6 M parameters",
           kResNet<ResNetVariant::kResNet50>},
          {"resnet101", "ResNet for ImageNet, 101 layers; 44.5 M parameters",
           kResNet<ResNetVariant::kResNet101>},
          {"resnet152", "ResNet for ImageNet, 152 layers; 60.2 M parameters",
           kResNet<ResNetVariant::kResNet152>},
          {"resnext50_32x4d", "ResNeXt-50 with 32 groups; 25.0 M parameters",
           kResNet<ResNetVariant::kResNeXt50>},
          {"wide_resnet50_2", "ResNet-50 with twice the inner width; 68.9 M parameters",
           kResNet<ResNetVariant::kWideResNet50>},
          {"se_resnext50_32x4d", "ResNeXt-50 with squeeze-and-excitation; 27.6 M parameters",
           kResNet<ResNetVariant::kSeResNeXt50>},
          {"dist_resnet50", "ResNet-50 for large batches: blocks begin as their shortcuts; 25.6 M",
           kResNet<ResNetVariant::kDistResNet50>},
          {"vgg11", "VGG, 11 layers; 132.9 M parameters", variant_of<make_vgg, 11, false>},
          {"vgg13", "VGG, 13 layers; 133.0 M parameters", variant_of<make_vgg, 13, false>},
          {"vgg16", "VGG, 16 layers; 138.4 M parameters", variant_of<make_vgg, 16, false>},
          {"vgg19", "VGG, 19 layers; 143.7 M parameters", variant_of<make_vgg, 19, false>},
          {"vgg11_bn", "VGG, 11 layers, batch normalisation", variant_of<make_vgg, 11, true>},
          {"vgg13_bn", "VGG, 13 layers, batch normalisation", variant_of<make_vgg, 13, true>},
          {"vgg16_bn", "VGG, 16 layers, batch normalisation", variant_of<make_vgg, 16, true>},
          {"vgg19_bn", "VGG, 19 layers, batch normalisation", variant_of<make_vgg, 19, true>},
          {"alexnet", "AlexNet, images from 63x63; 61.1 M parameters", make_alexnet},
          {"googlenet", "GoogLeNet with two auxiliary classifiers; 13.0 M parameters",
           make_googlenet},
          {"densenet121", "DenseNet for ImageNet, 121 layers; 8.0 M parameters", make_densenet121},
          {"squeezenet1_0", "SqueezeNet 1.0; 1.2 M parameters", make_squeezenet},
          {"mobilenet_v2", "MobileNetV2; 3.5 M parameters", make_mobilenet_v2},
          {"lstm", "language model for text: 3 LSTM layers of 650 units unless set", make_lstm},
      });
  return registry;
}

bool takes_text(std::string_view model) { return model == "lstm"; }

}  // namespace cohort::models
