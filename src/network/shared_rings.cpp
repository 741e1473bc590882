#include "network/shared_rings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace cohort::network {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// Controls of both rings, then the ring that the listening end writes, then the other.
constexpr std::size_t kControlBytes = 4096;
constexpr std::size_t kTotalBytes = kControlBytes + 2 * kRingBytes;
static_assert(2 * sizeof(RingControl) <= kControlBytes);

std::byte* map(int descriptor) {
  void* memory = ::mmap(nullptr, kTotalBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

RingControl& control(std::byte* memory, bool of_listener) {
  return reinterpret_cast<RingControl*>(memory)[of_listener ? 0 : 1];
}

std::span<std::byte> data(std::byte* memory, bool of_listener) {
  return {memory + kControlBytes + (of_listener ? 0 : kRingBytes), kRingBytes};
}

}  // namespace

SharedRings::SharedRings(std::byte* memory, bool listens)
    : memory_(memory),
      writer_(control(memory, listens), data(memory, listens)),
      reader_(control(memory, !listens), data(memory, !listens)) {}

SharedRings::~SharedRings() { ::munmap(memory_, kTotalBytes); }

std::unique_ptr<SharedRings> SharedRings::create(Descriptor& descriptor) {
  Descriptor made(::memfd_create("cohort-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made || ::ftruncate(made.get(), kTotalBytes) != 0 ||
      ::fcntl(made.get(), F_ADD_SEALS, kSeals) != 0) {
    return nullptr;
  }
  std::byte* memory = map(made.get());
  if (memory == nullptr) return nullptr;
  new (memory) RingControl[2]{};
  descriptor = std::move(made);
  return std::unique_ptr<SharedRings>(new SharedRings(memory, true));
}

std::unique_ptr<SharedRings> SharedRings::attach(const Descriptor& descriptor) {
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  struct stat about {};
  // Without its seals the peer could shorten it, and touching what is gone ends the process.
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(descriptor.get(), &about) != 0 ||
      about.st_size != static_cast<off_t>(kTotalBytes)) {
    return nullptr;
  }
  std::byte* memory = map(descriptor.get());
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<SharedRings>(new SharedRings(memory, false));
}

bool send_with_descriptor(int socket, std::span<const std::byte> bytes, int descriptor) {
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* extra = CMSG_FIRSTHDR(&message);
  extra->cmsg_level = SOL_SOCKET;
  extra->cmsg_type = SCM_RIGHTS;
  extra->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(extra), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

IoResult receive_with_descriptor(int socket, std::span<std::byte> into, Descriptor& received) {
  iovec piece{into.data(), into.size()};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  const ssize_t bytes = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (bytes < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return {later ? IoResult::Status::kWantRead : IoResult::Status::kFailed, 0};
  }
  for (cmsghdr* extra = CMSG_FIRSTHDR(&message); extra != nullptr;
       extra = CMSG_NXTHDR(&message, extra)) {
    // There is room for one only; the system drops the rest.
    if (extra->cmsg_level != SOL_SOCKET || extra->cmsg_type != SCM_RIGHTS ||
        extra->cmsg_len != CMSG_LEN(sizeof(int))) {
      continue;
    }
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(extra), sizeof descriptor);
    received = Descriptor(descriptor);
  }
  if (bytes == 0) return {IoResult::Status::kEnd, 0};
  return {IoResult::Status::kDone, static_cast<std::size_t>(bytes)};
}

}  // namespace cohort::network
