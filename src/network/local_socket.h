// Where processes of one user and host find each other's Unix sockets: a folder of that user alone,
// in which a socket is named after the TCP address that its process listens at.
#pragma once

#include <cstdint>
#include <string>

#include "network/address.h"
#include "network/sockets.h"

namespace cohort::network {

// `address` is TCP's. 127.0.0.1 and 127.0.0.2 are two; localhost is the former.
std::string local_socket_path(const std::string& folder, const Address& address);

// Whether it is a folder, no link, of this user, and closed to all others.
bool is_private_folder(const std::string& folder);

// Makes it, but not the folders above it, when it is missing. Throws ConfigError when it is there
// and not private.
void make_private_folder(const std::string& folder);

// Removes the sockets in such a folder that killed processes have left: nobody listens there.
void remove_left_sockets(const std::string& folder);

// A listening socket whose name vanishes with it.
class LocalSocket {
 public:
  LocalSocket() = default;
  // Throws ConfigError as listen_at_path().
  explicit LocalSocket(const std::string& path);
  LocalSocket(LocalSocket&& other) noexcept { *this = std::move(other); }
  LocalSocket& operator=(LocalSocket&& other) noexcept;
  ~LocalSocket() { remove(); }

  Descriptor& descriptor() { return descriptor_; }
  void remove();  // the name; unless another process has put its own there

 private:
  Descriptor descriptor_;
  std::string path_;
  std::uint64_t device_ = 0;
  std::uint64_t node_ = 0;
};

}  // namespace cohort::network
