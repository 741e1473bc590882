// What every process that a launcher starts goes through, and how often and how long the launcher
// looks after it.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace cohort::launch {

inline constexpr int kPollEveryMs = 50;
inline constexpr int kReadsPerPoll = 16;  // then stop requests and the child's end are looked for
inline constexpr std::chrono::seconds kHardStopAfter{10};
// Before that a program may not have installed its signal handlers: a signal would end it.
inline constexpr std::chrono::seconds kStartTime{2};

// In the forked child: becomes the program, in a process group of its own, without standard input,
// with `errors` as its error stream. Ends with status 127 when it cannot. Dies with `parent`.
[[noreturn]] void exec_child(char* const* arguments, char* const* environment, int errors,
                             pid_t parent);

}  // namespace cohort::launch
