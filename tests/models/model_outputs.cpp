// model_outputs MODEL CHANNELS SIZE CLASSES PREFIX
//
// Builds a model, gives every tensor values that follow from its name and the entries' positions,
// runs it in evaluation mode on such an input of two images, and writes
//   PREFIX.manifest   one line per tensor: "parameter" or "buffer", name, shape
//   PREFIX.output     the outputs, float32 in the machine's byte order
// compare_torchvision.py does the same in Python. The arithmetic is in doubles and exact integers,
// so both sides start from the same bits.
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "models/registry.h"

namespace {

std::uint32_t hash_of(const std::string& name) {  // FNV-1a
  std::uint32_t hash = 2166136261u;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  }
  return hash;
}

// In [0, 1), 24 bits.
double fraction(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  x ^= x >> 16;
  return static_cast<double>(x >> 8) / 16777216.0;
}

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// Values are low + width * fraction.
void fill(const std::string& name, const at::Tensor& tensor) {
  double low = -0.1;
  double width = 0.2;
  if (tensor.dim() > 1) {
    const double fan_in = static_cast<double>(tensor.numel() / tensor.size(0));
    low = -std::sqrt(6.0 / fan_in);
    width = -2.0 * low;
  } else if (ends_with(name, "weight") || ends_with(name, "running_var")) {
    low = 0.5;
    width = 1.0;
  }
  const std::uint32_t start = hash_of(name);
  float* values = tensor.data_ptr<float>();
  for (std::int64_t index = 0; index < tensor.numel(); ++index) {
    values[index] =
        static_cast<float>(low + width * fraction(start + static_cast<std::uint32_t>(index)));
  }
}

void describe(std::ofstream& manifest, const char* kind, const std::string& name,
              const at::Tensor& tensor) {
  manifest << kind << ' ' << name;
  for (const std::int64_t size : tensor.sizes()) manifest << ' ' << size;
  manifest << '\n';
}

int run(char** arguments) {
  cohort::models::ModelOptions options;
  options.channels = std::stoll(arguments[2]);
  options.height = std::stoll(arguments[3]);
  options.width = options.height;
  options.classes = std::stoll(arguments[4]);
  const std::string prefix = arguments[5];

  c10::NoGradGuard no_gradient;
  const auto model = cohort::models::models().make(arguments[1], options, at::Generator());
  std::ofstream manifest(prefix + ".manifest");
  for (const cohort::models::Parameter& parameter : model->store().parameters()) {
    fill(parameter.name, parameter.value);
    describe(manifest, "parameter", parameter.name, parameter.value);
  }
  for (const cohort::models::Buffer& buffer : model->store().buffers()) {
    if (buffer.value.is_floating_point()) fill(buffer.name, buffer.value);
    describe(manifest, "buffer", buffer.name, buffer.value);
  }

  at::Tensor input = at::empty({2, options.channels, options.height, options.width});
  fill("input", input);
  model->store().set_training(false);
  const at::Tensor output = model->forward(input).contiguous();
  std::ofstream file(prefix + ".output", std::ios::binary);
  file.write(reinterpret_cast<const char*>(output.data_ptr<float>()),
             static_cast<std::streamsize>(output.nbytes()));
  manifest.close();
  file.close();
  return manifest && file ? 0 : 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 6) {
    std::fprintf(stderr, "usage: model_outputs MODEL CHANNELS SIZE CLASSES PREFIX\n");
    return 2;
  }
  at::set_num_threads(1);
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "model_outputs: %s\n", error.what());
    return 1;
  }
}
