// The work that a thread gives to a GPU: a stream of its own, moments in it, and work that is
// recorded once and repeated. On a CPU, and without the kernels, work is done when a call returns.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "core/clock.h"

namespace cohort::methods {

// For as long as it lives, what the calling thread gives to `device` goes to a stream of its own,
// beside that of other threads. Work that is recorded needs one.
class DeviceStream {
 public:
  explicit DeviceStream(c10::Device device);
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of the threads of this process that give work to a GPU, the one whose turn it is. What libraries
// choose by measuring (convolutions) they choose undisturbed then: a turn begins when the GPU has
// nothing to do.
class DeviceTurn {
 public:
  explicit DeviceTurn(c10::Device device);  // waits for it
  ~DeviceTurn();
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The moment at which a device has done all that the calling thread gave it up to now.
class DeviceMoment {
 public:
  static DeviceMoment now(c10::Device device);

  bool passed() const;
  void wait() const;
  // From `earlier` to this one, on the device's own clock. Both have passed.
  double seconds_since(const DeviceMoment& earlier) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // null: it has passed, at `time_`
  Clock::time_point time_;
};

// Whether DeviceGraph can record on `device`.
bool can_record(c10::Device device);

// Work recorded once and repeated by a single launch. It may not wait for the device, copy from or
// to ordinary memory, or allocate what outlives it but for tensors that the caller keeps: these are
// overwritten by every replay().
class DeviceGraph {
 public:
  DeviceGraph();
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  // Calls `work` without doing it: replay() does. What `work` draws from `generator` is drawn anew
  // each time. Throws RunError, with the cause, where it cannot be recorded.
  void record(at::Generator& generator, const std::function<void()>& work);
  void replay();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort::methods
