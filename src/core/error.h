// Failures, by whose they are. The program's exit status follows from the kind.
//
//   ConfigError        the user's: says what to change and lists valid values (status 2)
//   RunError           the run's: data, disk or arithmetic; says where and what to try (1)
//   PeerError          another rank's or the network's; this process is healthy (1)
//   InterruptedError   nobody's: the user ended a wait (130)
//   COHORT_CHECK       ours: an invariant that no input can break; on in release builds too
//
// Expected outcomes are return values (std::optional), not exceptions.
#pragma once

#include <stdexcept>
#include <string>

namespace cohort {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ConfigError : public Error {
 public:
  using Error::Error;
};

class RunError : public Error {
 public:
  using Error::Error;
};

// Memory could not be had; says which settings to lower.
class OutOfMemoryError : public RunError {
 public:
  using RunError::RunError;
};

class PeerError : public Error {
 public:
  using Error::Error;
};

class InterruptedError : public Error {
 public:
  using Error::Error;
};

// This process may be the one that was lost: nobody is at fault whom it could name.
class CutOffError : public PeerError {
 public:
  using PeerError::PeerError;
};

// A file that is missing, truncated, foreign or damaged. The message names the file, what was
// expected and what was found.
class FileError : public RunError {
 public:
  using RunError::RunError;
};

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& message);
}  // namespace detail

}  // namespace cohort

#define COHORT_CHECK(condition, message)                                         \
  do {                                                                           \
    if (!(condition)) [[unlikely]] {                                             \
      ::cohort::detail::check_failed(#condition, __FILE__, __LINE__, (message)); \
    }                                                                            \
  } while (false)
