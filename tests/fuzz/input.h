// The bytes of a fuzzer as a source of decisions; zeros when they are used up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/types.h"

namespace cohort {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ == size_; }
  std::uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  std::uint64_t word() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  std::uint64_t number() {  // mostly small
    const std::uint8_t first = byte();
    return first < 250 ? first : word();
  }
  Bytes bytes(std::size_t count) {
    Bytes out(count);
    for (std::byte& each : out) each = static_cast<std::byte>(byte());
    return out;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

}  // namespace cohort
