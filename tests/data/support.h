// Small files and pictures for the tests of this layer.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace cohort::data::test {

using ByteVector = std::vector<std::uint8_t>;

// A folder that is gone when the object is.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Writes a file below the folder, making the folders it lies in.
  std::filesystem::path write(const std::string& name, const ByteVector& bytes) const;

 private:
  std::filesystem::path path_;
};

ByteVector gzip(const ByteVector& bytes);
ByteVector idx(const std::vector<std::uint32_t>& dimensions, const ByteVector& values);

// The four files of an MNIST-like set of 2 x 3 images; labels are index mod 10.
void write_small_mnist(const TemporaryFolder& folder, const std::string& below, int train,
                       int test);
ByteVector cifar_records(int count, bool hundred);

// A picture of one colour. RGB, or one value for grey, or four for CMYK.
ByteVector jpeg(int width, int height, const ByteVector& colour);
// An RGB picture in which every value differs from its neighbours'.
ByteVector noisy_jpeg(int width, int height);

// What `action` throws as Error, or "" when it does not throw.
template <class Kind, class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

std::vector<float> read_sample(const Dataset& data, std::int64_t index,
                               std::uint64_t augmentation = 0);

}  // namespace cohort::data::test
