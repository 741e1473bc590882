// The vectors of gossip in the memory of a GPU that all ranks of a process share: nothing of a
// round passes through main memory.
//
// What the ranks send each other through their transport stays as it is, frames, rounds and checks,
// but the message in a frame is a handle: the number of bytes that it stands for. The content lies
// on the MessageBoard, in the place for this sender and round.
//
// All work of a rank goes to one stream, that of the thread that made this object and trains. What
// another thread asks for (frames come on one of their own) waits in a list until that thread next
// asks for something: given to the stream at once, it could get into a recording of a step
// (DeviceGraph). A reader's stream waits for the event that follows the sender's writing.
//
// Nobody overwrites what is still read. A writes its message of round n + kSlots after it has ended
// round n + kSlots - 1, so its stream has waited for B's message of that round, which B's stream
// made after all that B did in earlier rounds: reading A's message of round n among it. That holds
// where neighbours are mutual, so graphs that change, which may be directed, are not for this.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gossip/settings.h"
#include "gossip/vectors.h"

namespace cohort::kernels {
class MessageBoard;
}

namespace cohort::methods {

class GpuVectors : public gossip::GossipVectors {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // The first message that was made of a vector with an element that is not finite; kNever where
  // there was none. Waits for the GPU; the making thread's.
  virtual std::uint64_t first_infinite() = 0;
};

// `tensors`: where they lie in the vectors of `numel` elements, whose memory is that of the calling
// thread's GPU. Null where the compressor has no kernel, or without the kernels.
std::shared_ptr<GpuVectors> make_gpu_vectors(const gossip::GossipSettings& settings,
                                             const std::vector<Range>& tensors, std::int64_t numel,
                                             const std::shared_ptr<kernels::MessageBoard>& board);

// The bytes that a frame of gossip counts: its length, but of a handle what it stands for.
std::size_t counted_bytes(std::span<const std::byte> frame);

}  // namespace cohort::methods
