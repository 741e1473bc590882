// A stream into memory.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace cohort::dialects {

class Memory {
 public:
  Memory() : stream_(::open_memstream(&data_, &size_)) {}
  ~Memory() {
    std::fclose(stream_);
    std::free(data_);  // NOLINT: open_memstream allocates with malloc
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return {data_, size_};
  }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

}  // namespace cohort::dialects
