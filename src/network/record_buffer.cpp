#include "network/record_buffer.h"

#include <cstring>
#include <utility>

namespace cohort {
namespace {

thread_local std::unique_ptr<std::byte[]> to_lend;

}  // namespace

std::span<std::byte> RecordBuffer::room() {
  if (!lent_) lent_ = std::move(to_lend);
  if (!lent_) lent_ = std::make_unique_for_overwrite<std::byte[]>(kSize);
  if (size() > 0 && (begin_ > 0 || memory_ != lent_.get())) {
    std::memmove(lent_.get(), memory_ + begin_, size());
  }
  memory_ = lent_.get();
  end_ = size();
  begin_ = 0;
  return {memory_ + end_, kSize - end_};
}

void RecordBuffer::rest() {
  if (!lent_ || size() > kLittle) return;
  if (size() > 0) {
    if (!little_) little_ = std::make_unique_for_overwrite<std::byte[]>(kLittle);
    std::memcpy(little_.get(), memory_ + begin_, size());
  }
  memory_ = little_.get();
  end_ = size();
  begin_ = 0;
  to_lend = std::move(lent_);
}

}  // namespace cohort
