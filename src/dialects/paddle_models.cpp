#include "dialects/paddle_models.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace cohort::dialects {
namespace {

const std::vector<std::pair<std::string, std::string>>& names() {
  static const std::vector<std::pair<std::string, std::string>> table = {
      {"AlexNet", "alexnet"},
      {"GoogleNet", "googlenet"},
      {"VGG11", "vgg11"},
      {"VGG13", "vgg13"},
      {"VGG16", "vgg16"},
      {"VGG19", "vgg19"},
      {"ResNet18", "resnet18"},
      {"ResNet34", "resnet34"},
      {"ResNet50", "resnet50"},
      {"ResNet101", "resnet101"},
      {"ResNet152", "resnet152"},
      {"DistResNet", "dist_resnet50"},
      {"ResNeXt50_32x4d", "resnext50_32x4d"},
      {"SE_ResNeXt50_32x4d", "se_resnext50_32x4d"},
      {"DenseNet121", "densenet121"},
      {"SqueezeNet1_0", "squeezenet1_0"},
      {"MobileNetV2", "mobilenet_v2"},
      {"MobileNetV2_x1_0", "mobilenet_v2"},
  };
  return table;
}

}  // namespace

std::string paddle_model(const std::string& name, const std::vector<std::string>& ours) {
  if (std::find(ours.begin(), ours.end(), name) != ours.end()) return name;
  std::vector<std::string> known;
  for (const auto& [theirs, own] : names()) {
    if (lower(theirs) == lower(name)) return own;
    known.push_back(theirs);
  }
  known.insert(known.end(), ours.begin(), ours.end());
  throw ConfigError(unknown_name("--model", name, known));
}

}  // namespace cohort::dialects
