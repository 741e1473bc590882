#include <array>
#include <set>

#include "core/error.h"
#include "storage/json.h"
#include "storage/safetensors.h"

namespace cohort::storage {
namespace {

constexpr std::size_t kAlignment = 8;

std::string header_entry(const TensorView& tensor, std::uint64_t begin) {
  const nlohmann::json shape = tensor.shape;
  return format_json(tensor.name, -1) + R"(:{"dtype":")" + std::string(dtype_name(tensor.dtype)) +
         R"(","shape":)" + shape.dump() + R"(,"data_offsets":[)" + std::to_string(begin) + "," +
         std::to_string(begin + tensor.bytes.size()) + "]}";
}

// Built as text because the JSON library would sort the tensors by name.
std::string header_text(std::span<const TensorView> tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += R"("__metadata__":)" + format_json(nlohmann::json(metadata), -1);
  }
  std::set<std::string_view> names;
  std::uint64_t begin = 0;
  for (const TensorView& tensor : tensors) {
    COHORT_CHECK(tensor.name != "__metadata__" && names.insert(tensor.name).second,
                 "tensor name '" + tensor.name + "' is reserved or occurs twice");
    COHORT_CHECK(array_bytes(tensor.dtype, tensor.shape) == tensor.bytes.size(),
                 "tensor '" + tensor.name + "' has bytes that do not match its shape");
    if (text.size() > 1) text += ",";
    text += header_entry(tensor, begin);
    begin += tensor.bytes.size();
  }
  text += "}";
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(FileWriter& writer, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = header_text(tensors, metadata);
  std::string start;
  for (std::size_t i = 0; i < 8; ++i) {
    start += static_cast<char>((std::uint64_t{header.size()} >> (8 * i)) & 0xff);
  }
  writer.write(start + header);
  for (const TensorView& tensor : tensors) writer.write(tensor.bytes);
}

void save_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                      const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  write_safetensors(file.writer(), tensors, metadata);
  file.commit();
}

}  // namespace cohort::storage
