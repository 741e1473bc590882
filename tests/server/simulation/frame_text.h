// A frame in a line of a trace.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "network/frame.h"

namespace cohort::simulation {

std::string frame_text(const FrameHeader& header, std::span<const std::byte> payload, int workers);

}  // namespace cohort::simulation
