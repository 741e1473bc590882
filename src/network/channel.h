// A connection as the event loop has it. Only for files of this layer: it includes Asio.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>

#include "network/stream.h"

namespace cohort::network {

struct Channel {
  boost::asio::posix::stream_descriptor descriptor;  // owns the socket, and waits for it
  std::unique_ptr<Stream> stream;                    // reads and writes it
};

}  // namespace cohort::network
