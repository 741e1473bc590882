// The bytes of TLS records on their way between a stream and the system.
//
// They go through memory for the records of a whole frame, so that one call moves them all. The
// streams of a thread hand it on to each other, so it stays in the caches, and a server of many
// workers needs little. A stream keeps it only while more than a little waits in it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "network/tls_records.h"

namespace cohort {

class RecordBuffer {
 public:
  static constexpr std::size_t kSize = 34 * kLongestRecord;

  std::size_t size() const { return end_ - begin_; }
  std::span<const std::byte> bytes() const { return {memory_ + begin_, size()}; }

  // All the memory behind the bytes there are. Moves these.
  std::span<std::byte> room();
  void put(std::size_t bytes) { end_ += bytes; }  // into the room
  void take(std::size_t bytes) { begin_ += bytes; }

  // Lets other streams have the memory, if there is but little in it.
  void rest();

 private:
  static constexpr std::size_t kLittle = 2 * kLongestRecord;

  std::unique_ptr<std::byte[]> lent_;    // kSize
  std::unique_ptr<std::byte[]> little_;  // kLittle, once needed
  std::byte* memory_ = nullptr;          // where the bytes are: lent_ or little_
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace cohort
