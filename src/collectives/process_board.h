// A notice board in memory that the processes of one host share: who is there, what each rank is
// doing, and who has failed.
//
// Every process has a watchdog thread that says "alive" ten times a second and looks after the
// others. One that is gone, or that has been silent too long, is reported once, by whoever sees it
// first. Nothing that another process writes here can do more harm than a wrong message.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/activity.h"
#include "core/clock.h"

namespace cohort::collectives {

// One line of text that many may write and the first does. Lies in shared memory; zeros are empty.
class FailureNote {
 public:
  // False when there is a text already. Cuts what is longer than there is room for. `orderly`: the
  // text tells of an end that is nobody's failure.
  bool write(const std::string& text, bool orderly = false);

  bool orderly() const { return orderly_.load() != 0; }

  // The text; waits a moment for one that is being written.
  std::string read() const;

 private:
  enum State : std::uint32_t { kEmpty, kBeingWritten, kReadable };
  std::atomic<std::uint32_t> state_;
  std::atomic<std::uint32_t> length_;
  std::atomic<std::uint32_t> orderly_;
  char text_[1012];
};

class ProcessBoard {
 public:
  using Ranks = std::vector<std::vector<Rank>>;  // by process: the ranks that live in it

  // The memory a board of so many processes and ranks needs.
  static std::size_t bytes(const Ranks& ranks);

  // `memory` are zeros, or a board that other processes use; it must outlive this object. `failed`
  // is called on the watchdog's thread, with a message, for every process that is lost. Throws
  // PeerError when another process has come as this one.
  ProcessBoard(std::byte* memory, Ranks ranks, int own, std::chrono::milliseconds silence,
               std::function<void(const std::string&)> failed);
  ProcessBoard(const ProcessBoard&) = delete;
  ProcessBoard& operator=(const ProcessBoard&) = delete;
  ~ProcessBoard();  // says that this process ends as it should

  int size() const { return static_cast<int>(ranks_.size()); }

  // Returns when all processes are there; PeerError names those that are not at `deadline`.
  void wait_for_all(Deadline deadline) const;

  // Whether this process may read the memory of all the others that are there.
  bool can_read_others() const;
  std::int64_t pid(int process) const;

  // How many cores the processes that are there may use together.
  int cores() const;

  std::string ranks(int process) const;       // "rank 1", "ranks 2 and 3"
  std::string name(int process) const;        // "rank 1 (process 4242)"
  std::string activities(int process) const;  // "at step 17, loading data"

  // Of the index-th rank of a process, in the shared memory.
  Activity& activity(int process, int index) const;

 private:
  struct Entry;  // what a process says of itself
  // What the watchdog remembers of another process.
  struct Watched {
    std::uint32_t heartbeat = 0;
    std::chrono::milliseconds silent{0};
    bool lost = false;
  };

  Entry& entry(int process) const;
  void sign_in();
  void watch();
  void look_after(int process, Watched& watched, std::chrono::milliseconds passed);

  std::byte* memory_;
  Ranks ranks_;
  int own_;
  std::chrono::milliseconds silence_;
  std::function<void(const std::string&)> failed_;
  const std::uint64_t probe_;  // what others try to read

  std::mutex mutex_;  // guards the next two
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread watchdog_;
};

}  // namespace cohort::collectives
