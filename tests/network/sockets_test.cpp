#include "network/sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "network/link_pair.h"
#include "network/local_socket.h"

namespace cohort::network {
namespace {

TEST(Tune, SendsWithoutDelayOrPacingWithinAHost) {
  Address address{.host = "127.0.0.1"};
  const Descriptor listener = listen_at(address);
  SocketAddress place;
  place.size = sizeof place.storage;
  ASSERT_EQ(::getsockname(listener.get(), place.get(), &place.size), 0);
  const Descriptor socket = begin_connecting(place);
  pollfd watched{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  ASSERT_EQ(::poll(&watched, 1, 5000), 1);
  ASSERT_EQ(connect_error(socket.get()), 0);

  tune(socket.get(), std::chrono::seconds(3));

  std::array<char, 16> control{};
  socklen_t size = control.size();
  ASSERT_EQ(::getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, control.data(), &size), 0);
  EXPECT_STREQ(control.data(), "reno");
  int without_delay = 0;
  size = sizeof without_delay;
  ASSERT_EQ(::getsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &without_delay, &size), 0);
  EXPECT_NE(without_delay, 0);
}

TEST(LocalSockets, ThatKilledProcessesLeftAreRemoved) {
  const test::PrivateFolder folder;
  const auto path = [&](const char* name) { return folder.path() + "/" + name; };
  const auto make = [&](const char* name, bool old) {
    Descriptor socket = listen_at_path(path(name));
    const timespec long_ago[2] = {{.tv_sec = 1000000000, .tv_nsec = 0},
                                  {.tv_sec = 1000000000, .tv_nsec = 0}};
    const bool aged = !old || ::utimensat(AT_FDCWD, path(name).c_str(), long_ago, 0) == 0;
    EXPECT_TRUE(aged);
    return socket;
  };
  make("left.sock", true);
  make("young.sock", false);
  const Descriptor used = make("used.sock", true);
  std::ofstream(path("file")) << "is no socket";
  remove_left_sockets(folder.path());
  EXPECT_FALSE(std::filesystem::exists(path("left.sock")));
  EXPECT_TRUE(std::filesystem::exists(path("young.sock"))) << "may be about to listen";
  EXPECT_TRUE(std::filesystem::exists(path("used.sock")));
  EXPECT_TRUE(std::filesystem::exists(path("file")));
}

}  // namespace
}  // namespace cohort::network
