#include "network/sockets.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <array>
#include <string>

namespace cohort {
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

}  // namespace
}  // namespace cohort
