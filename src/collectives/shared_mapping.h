// Memory that processes of one host share: a file without a lasting name.
#pragma once

#include <cstddef>
#include <string>

namespace cohort::collectives {

class SharedMapping {
 public:
  // Makes and maps `bytes` bytes of zeros. They are there for good: a file system without room is
  // an error here, not a crash later. Uses /dev/shm, or /tmp where that is missing or full. Only
  // this user can open it. Throws RunError.
  static SharedMapping create(std::size_t bytes);

  // Maps what another process created under `name`. Throws RunError when it is not there, or has
  // not `bytes` bytes, or belongs to another user.
  static SharedMapping open(const std::string& name, std::size_t bytes);

  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  SharedMapping& operator=(SharedMapping&&) = delete;
  ~SharedMapping();  // unmaps, and removes the name if this object created it

  const std::string& name() const { return name_; }
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  // From then on nobody else can map it; those who have keep it. For the object that created it.
  void remove_name();

 private:
  SharedMapping(std::string name, std::byte* data, std::size_t size, bool named)
      : name_(std::move(name)), data_(data), size_(size), named_(named) {}

  std::string name_;  // its path
  std::byte* data_;
  std::size_t size_;
  bool named_;  // this object has to remove the name
};

}  // namespace cohort::collectives
