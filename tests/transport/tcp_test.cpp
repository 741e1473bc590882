#include "transport/tcp.h"

#include <gtest/gtest.h>

#include <thread>

#include "network/link_pair.h"
#include "network/raw_peer.h"

namespace cohort::test {
namespace {

using namespace std::chrono_literals;

// A member of the job that does not keep to the order of a line.
TEST(Tcp, OutlivesAMessageBeforeTheGreeting) {
  TcpNodeOptions options;
  options.job = job_id_of("test");
  options.size = 2;
  TcpNode node(options);
  for (const std::size_t length : {0, 100}) {
    RawPeer peer(node.address().port);
    peer.write(hello_bytes(worker(1), worker(0)));
    const Deadline soon = deadline_in(5s);
    while (peer.received().empty() && Clock::now() < soon) std::this_thread::sleep_for(1ms);
    peer.write(frame_bytes({.type = kFirstFreeType + 3, .job = options.job}, Bytes(length)));
    while (!peer.closed() && Clock::now() < soon) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(peer.closed()) << length;
  }
}

}  // namespace
}  // namespace cohort::test
