// SHA-256 as lower-case hexadecimal text.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::storage {

// Hashes bytes that come in pieces. Not thread-safe; make one per use.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  std::string finish();  // 64 digits; called once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(std::span<const std::byte> bytes);
std::string sha256(std::string_view text);

// The hash of each piece, in order. Two threads share the pieces.
std::vector<std::string> sha256_of_each(const std::vector<std::span<const std::byte>>& pieces);

}  // namespace cohort::storage
