#include "storage/checkpoint.h"

#include <future>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/failpoint.h"
#include "storage/folder.h"
#include "storage/manifest.h"
#include "storage/sha256.h"

namespace cohort::storage {
namespace fs = std::filesystem;
namespace {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kStateFile = "state.safetensors";
constexpr const char* kManifestFile = "manifest.json";
constexpr std::uint64_t kMaximumManifestBytes = 256 << 20;

void append_bytes(const std::vector<TensorView>& tensors,
                  std::vector<std::span<const std::byte>>& pieces) {
  for (const TensorView& tensor : tensors) pieces.push_back(tensor.bytes);
}

std::vector<std::string> hash_all(const std::vector<TensorView>& model,
                                  const std::vector<TensorView>& state) {
  std::vector<std::span<const std::byte>> pieces;
  append_bytes(model, pieces);
  append_bytes(state, pieces);
  return sha256_of_each(pieces);
}

std::uint64_t write_tensors(const fs::path& path, const std::vector<TensorView>& tensors) {
  FileWriter writer(path);
  write_safetensors(writer, tensors);
  writer.sync_and_close();
  return writer.size();
}

// `hashes` are those of `tensors`, in the same order.
ManifestFile describe(std::uint64_t bytes, const std::vector<TensorView>& tensors,
                      std::span<const std::string> hashes) {
  ManifestFile file{bytes, {}};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    file.tensors.emplace(tensors[i].name,
                         ManifestTensor{tensors[i].dtype, tensors[i].shape, hashes[i]});
  }
  return file;
}

Manifest read_manifest(const fs::path& path) {
  const std::string text = read_text_file(path, kMaximumManifestBytes);
  try {
    return parse_manifest(text);
  } catch (const FileError& error) {
    throw FileError(path.string() + ": " + error.what());
  }
}

void compare(const fs::path& path, const ManifestFile& expected, const ManifestFile& found) {
  const auto refuse = [&](const std::string& reason) {
    throw FileError(path.string() + " is not the file the manifest describes: " + reason);
  };
  if (found.bytes != expected.bytes) {
    refuse(std::to_string(expected.bytes) + " bytes expected, " + std::to_string(found.bytes) +
           " found");
  }
  for (const auto& [name, tensor] : expected.tensors) {
    const auto other = found.tensors.find(name);
    if (other == found.tensors.end()) refuse("tensor '" + name + "' is missing");
    if (other->second.dtype != tensor.dtype || other->second.shape != tensor.shape) {
      refuse("tensor '" + name + "' has another type or shape");
    }
    if (other->second.sha256 != tensor.sha256) {
      refuse("tensor '" + name + "' is damaged, its hash should be " + tensor.sha256 + " and is " +
             other->second.sha256);
    }
  }
  if (found.tensors.size() != expected.tensors.size()) refuse("it has tensors too many");
}

}  // namespace

void write_checkpoint(const fs::path& folder, const CheckpointContents& contents) {
  COHORT_CHECK(contents.step >= 0, "steps are counted from 0");
  std::future<std::vector<std::string>> hashing =
      std::async([&] { return hash_all(contents.model, contents.state); });
  const std::uint64_t model_bytes = write_tensors(folder / kModelFile, contents.model);
  const std::uint64_t state_bytes = write_tensors(folder / kStateFile, contents.state);
  const std::vector<std::string> hashes = hashing.get();

  const auto all = std::span(hashes);
  Manifest manifest;
  manifest.step = contents.step;
  manifest.files[kModelFile] =
      describe(model_bytes, contents.model, all.first(contents.model.size()));
  manifest.files[kStateFile] =
      describe(state_bytes, contents.state, all.subspan(contents.model.size()));
  manifest.state = contents.extra;

  FileWriter writer(folder / kManifestFile);
  writer.write(format_manifest(manifest));
  writer.sync_and_close();
  sync_folder(folder);
}

LoadedCheckpoint load_checkpoint(const fs::path& folder) {
  const fs::path manifest_path = folder / kManifestFile;
  Manifest manifest = read_manifest(manifest_path);
  if (manifest.files.size() != 2 || !manifest.files.contains(kModelFile) ||
      !manifest.files.contains(kStateFile)) {
    throw FileError(manifest_path.string() + " does not describe " + kModelFile + " and " +
                    kStateFile);
  }
  LoadedCheckpoint loaded{manifest.step, folder, SafetensorsFile::open(folder / kModelFile),
                          SafetensorsFile::open(folder / kStateFile), std::move(manifest.state)};

  const std::vector<TensorView>& model = loaded.model.tensors();
  const std::vector<TensorView>& state = loaded.state.tensors();
  const std::vector<std::string> hashes = hash_all(model, state);
  const auto all = std::span(hashes);
  compare(folder / kModelFile, manifest.files[kModelFile],
          describe(loaded.model.size_bytes(), model, all.first(model.size())));
  compare(folder / kStateFile, manifest.files[kStateFile],
          describe(loaded.state.size_bytes(), state, all.subspan(model.size())));
  if (!loaded.model.metadata().empty() || !loaded.state.metadata().empty()) {
    throw FileError(folder.string() + " has metadata the manifest does not describe");
  }
  return loaded;
}

}  // namespace cohort::storage
