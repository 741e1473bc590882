// PaddlePaddle's names of networks.
#pragma once

#include <string>
#include <vector>

namespace cohort::dialects {

// Our name of the network that `name` means: Paddle's ("ResNet50", in any case of letters) or one
// of `ours`. Throws ConfigError that lists both when there is none.
std::string paddle_model(const std::string& name, const std::vector<std::string>& ours);

}  // namespace cohort::dialects
