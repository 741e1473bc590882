// Numbers in bytes, the lowest first, whatever the machine's own order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cohort::network {

template <class Number>
void put_number(std::byte* out, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out[i] = static_cast<std::byte>(value >> (8 * i) & 255);
  }
}

template <class Number>
Number get_number(const std::byte* in) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<Number>(value | static_cast<Number>(in[i]) << (8 * i));
  }
  return value;
}

}  // namespace cohort::network
