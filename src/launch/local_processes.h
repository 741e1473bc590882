// Processes of this host that this one started: what they write, how they end, how they are told to
// end. Used from one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"

namespace cohort::launch {

struct LocalProcess {
  std::string name;                           // for messages: "worker 1"
  std::vector<std::string> command;           // the first word is a path
  std::vector<std::string> environment = {};  // NAME=value, beside what all have
  std::string prefix = {};                    // of every line of its error stream
};

// What stands between the processes and the terminal.
struct LocalControl {
  std::function<void(std::string_view)> errors;  // gets the lines of their error streams
  std::function<int()> stops;                    // stop requests so far; asked every 50 ms
  std::vector<std::string> environment = {};     // NAME=value, of all
};

class LocalProcesses {
 public:
  explicit LocalProcesses(const LocalControl& control) : control_(control) {}
  LocalProcesses(const LocalProcesses&) = delete;
  LocalProcesses& operator=(const LocalProcesses&) = delete;
  ~LocalProcesses();  // kills those that are left

  // Starts one; returns its number, from 0. Its output is ours, its input empty. It has a process
  // group of its own, so that Ctrl-C reaches only us. Should this process be killed, it gets
  // SIGTERM. Throws RunError.
  int start(const LocalProcess& process);
  void start_again(int number);  // one that has ended
  // The same with more words on its command line.
  void start_again(int number, const std::vector<std::string>& words);

  // Passes on what they write until one ends, or for 50 ms. Those that ended, each once.
  std::vector<int> wait();

  int count() const { return static_cast<int>(all_.size()); }
  const std::string& name(int number) const { return all_[number].process.name; }
  pid_t pid(int number) const { return all_[number].pid; }
  bool running(int number) const { return all_[number].running; }
  int status(int number) const { return all_[number].status; }  // 128 + n when signal n ended it
  bool killed(int number) const { return all_[number].status > 128 && all_[number].by_signal; }
  Clock::time_point started(int number) const { return all_[number].started; }

  void signal(int number, int which);
  void kill(int number);  // with all that it started

 private:
  struct One {
    LocalProcess process;
    pid_t pid = -1;
    int errors = -1;  // the reading end of its error stream
    bool running = false;
    bool by_signal = false;
    int status = 0;
    Clock::time_point started = {};
    std::string line = {};  // its last, unfinished
  };

  void launch(One& one);
  void relay(One& one);
  void finish_line(One& one);
  void note_end(One& one, int state);

  const LocalControl& control_;
  std::vector<One> all_;
};

// Passes stop requests on: the first as SIGUSR1, which asks to save and end, not before a process
// can take it; the second as SIGTERM; who is still there 10 s later is killed.
class LocalStops {
 public:
  explicit LocalStops(const LocalControl& control) : control_(control) {}

  // `polite`: the processes that the first request is for, from `first` on.
  void look(LocalProcesses& processes, int first, int last);
  bool any() const { return control_.stops() > 0; }

 private:
  const LocalControl& control_;
  std::vector<bool> asked_ = {};  // by process
  bool ending_ = false;
  Deadline kill_at_ = {};
};

// How a process ended: "was ended by signal 9 (Killed)", "ended with status 3".
std::string ending_text(const LocalProcesses& processes, int number);

// Different ports of 127.0.0.1 that were free a moment ago. Throws RunError.
std::vector<std::uint16_t> free_ports(int count);

// The environment without what other launchers said to this process about its place.
std::vector<std::string> environment_for_children(const char* const* environment);

}  // namespace cohort::launch
