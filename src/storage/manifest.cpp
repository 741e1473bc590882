#include "storage/manifest.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "storage/json.h"
#include "storage/sha256.h"

namespace cohort::storage {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr int kDepthLimit = 64;  // the engine's state is a few levels deep
constexpr std::size_t kHashDigits = 64;
constexpr std::string_view kBeforeHash = R"({"sha256":")";
constexpr std::string_view kBeforeBody = R"(","body":)";
constexpr std::string_view kAfterBody = "}\n";

const json& member(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) {
    throw FileError("the manifest lacks \"" + std::string(key) + "\" where it is expected");
  }
  return *found;
}

const json& object_member(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_object()) {
    throw FileError("the manifest's \"" + std::string(key) + "\" is not an object");
  }
  return value;
}

std::int64_t whole_number(const json& value, const char* what) {
  if (!value.is_number_unsigned() ||
      value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    throw FileError("the manifest's " + std::string(what) + " is " + value.dump() +
                    ", expected a whole number");
  }
  return value.get<std::int64_t>();
}

std::string text_member(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) {
    throw FileError("the manifest's \"" + std::string(key) + "\" is not a string");
  }
  return value.get<std::string>();
}

ManifestTensor read_tensor(const json& entry) {
  ManifestTensor tensor;
  const std::string type = text_member(entry, "dtype");
  const auto dtype = dtype_from_name(type);
  if (!dtype) throw FileError("the manifest has the unknown dtype '" + type + "'");
  tensor.dtype = *dtype;
  const json& shape = member(entry, "shape");
  if (!shape.is_array()) throw FileError("the manifest has a shape that is not a list");
  for (const json& dimension : shape) tensor.shape.push_back(whole_number(dimension, "dimension"));
  tensor.sha256 = text_member(entry, "sha256");
  return tensor;
}

// The text between the fixed parts, once its hash is known to be right.
std::string_view sealed_body(std::string_view text) {
  const std::size_t body_begin = kBeforeHash.size() + kHashDigits + kBeforeBody.size();
  if (text.size() < body_begin + kAfterBody.size() || !text.starts_with(kBeforeHash) ||
      !text.ends_with(kAfterBody) ||
      text.substr(kBeforeHash.size() + kHashDigits, kBeforeBody.size()) != kBeforeBody) {
    throw FileError("not a checkpoint manifest, or truncated (" + std::to_string(text.size()) +
                    " bytes)");
  }
  const std::string_view body =
      text.substr(body_begin, text.size() - body_begin - kAfterBody.size());
  const std::string_view expected = text.substr(kBeforeHash.size(), kHashDigits);
  if (const std::string found = sha256(body); found != expected) {
    throw FileError("the manifest is damaged: its hash should be " + std::string(expected) +
                    " and is " + found);
  }
  return body;
}

}  // namespace

std::string format_manifest(const Manifest& manifest) {
  json files = json::object();
  for (const auto& [file_name, file] : manifest.files) {
    json tensors = json::object();
    for (const auto& [name, tensor] : file.tensors) {
      tensors[name] = {{"dtype", std::string(dtype_name(tensor.dtype))},
                       {"shape", tensor.shape},
                       {"sha256", tensor.sha256}};
    }
    files[file_name] = {{"bytes", file.bytes}, {"tensors", std::move(tensors)}};
  }
  const json body = {{"format", kFormat},
                     {"step", manifest.step},
                     {"files", std::move(files)},
                     {"state", manifest.state}};
  const std::string text = format_json(body, 1);
  std::string sealed(kBeforeHash);
  sealed += sha256(text);
  sealed += kBeforeBody;
  sealed += text;
  sealed += kAfterBody;
  return sealed;
}

Manifest parse_manifest(std::string_view text) {
  const json body = parse_json(sealed_body(text), kDepthLimit);
  const std::int64_t format = whole_number(member(body, "format"), "format");
  if (format != kFormat) {
    throw FileError("the checkpoint has format " + std::to_string(format) +
                    ", this program reads format " + std::to_string(kFormat));
  }
  Manifest manifest;
  manifest.step = whole_number(member(body, "step"), "step");
  for (const auto& [file_name, entry] : object_member(body, "files").items()) {
    ManifestFile& file = manifest.files[file_name];
    file.bytes = static_cast<std::uint64_t>(whole_number(member(entry, "bytes"), "length"));
    for (const auto& [name, tensor] : object_member(entry, "tensors").items()) {
      file.tensors.emplace(name, read_tensor(tensor));
    }
  }
  manifest.state = member(body, "state");
  return manifest;
}

}  // namespace cohort::storage
