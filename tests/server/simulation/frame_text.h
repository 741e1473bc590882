// A frame in a line of a trace.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "network/frame.h"

namespace cohort::server::simulation {

std::string frame_text(const network::FrameHeader& header, std::span<const std::byte> payload,
                       int workers);

}  // namespace cohort::server::simulation
