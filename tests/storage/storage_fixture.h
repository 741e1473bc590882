// What the storage tests share: a folder that goes away, and checkpoints whose content can be told
// from their step alone, so that a test needs no copy to compare with.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "storage/checkpoint_store.h"
#include "storage/file.h"
#include "storage/folder.h"

namespace cohort::storage::test {

class TemporaryFolder {
 public:
  // In memory where that is possible: thousands of fsync calls on a busy disk take minutes.
  TemporaryFolder() {
    const bool in_memory = ::access("/dev/shm", W_OK) == 0;
    const std::filesystem::path parent =
        in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string name = (parent / "cohort-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~TemporaryFolder() { remove_tree(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// How many times the nominal count a randomised test runs; COHORT_TEST_SCALE=5 for a long one.
inline int scaled(int nominal) {
  const char* scale = std::getenv("COHORT_TEST_SCALE");
  return nominal * (scale == nullptr ? 1 : std::max(1, std::atoi(scale)));
}

// Contents that follow from (step, variant), and the storage their views show.
struct KnownContents {
  explicit KnownContents(Step step, std::uint64_t variant = 0, std::size_t values = 300) {
    RandomStream random(variant, "contents", {static_cast<std::uint64_t>(step)});
    const auto add = [&](std::vector<TensorView>& list, const char* name, DType dtype,
                         std::vector<std::int64_t> shape) {
      std::size_t size = dtype_bytes(dtype);
      for (const std::int64_t n : shape) size *= static_cast<std::size_t>(n);
      Bytes& bytes = storage.emplace_back(size);
      for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xff);
      list.push_back({name, dtype, std::move(shape), bytes});
    };
    storage.reserve(6);
    const auto length = static_cast<std::int64_t>(values);
    add(contents.model, "fc.weight", DType::kF32, {length, 2});
    add(contents.model, "fc.bias", DType::kF32, {length});
    add(contents.model, "bn.batches", DType::kI64, {});
    add(contents.state, "momentum/fc.weight", DType::kF32, {length, 2});
    add(contents.state, "mask", DType::kBool, {3});
    add(contents.state, "nothing", DType::kF16, {0, 4});
    contents.step = step;
    contents.extra = {{"variant", variant}, {"epoch", step / 7}, {"loss", 0.1 * double(step)}};
  }
  KnownContents(const KnownContents&) = delete;
  KnownContents& operator=(const KnownContents&) = delete;

  std::vector<Bytes> storage;
  CheckpointContents contents;
};

inline bool same_tensors(const std::vector<TensorView>& a, const std::vector<TensorView>& b) {
  return std::ranges::equal(a, b, [](const TensorView& x, const TensorView& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape &&
           std::ranges::equal(x.bytes, y.bytes);
  });
}

// Whether `loaded` is exactly what KnownContents(loaded.step, its variant) holds.
inline bool is_known(const LoadedCheckpoint& loaded, std::size_t values = 300) {
  const KnownContents known(loaded.step, loaded.extra.at("variant").get<std::uint64_t>(), values);
  return same_tensors(loaded.model.tensors(), known.contents.model) &&
         same_tensors(loaded.state.tensors(), known.contents.state) &&
         loaded.extra == known.contents.extra;
}

inline int count_hidden(const std::filesystem::path& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += entry.path().filename().string().starts_with('.') ? 1 : 0;
  }
  return count;
}

// Runs `body` in a child process and gives its wait status. The child leaves by _exit: 0 when body
// returns, 1 when it throws.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// The message of the FileError that `body` throws, "" when it throws none.
template <class Body>
std::string file_error(Body body) {
  try {
    body();
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace cohort::storage::test
