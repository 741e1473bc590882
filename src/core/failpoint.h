// Named places where a test can make the program fail.
//
//   COHORT_FAILPOINT("checkpoint.before_rename");
//
// In builds without COHORT_FAILPOINTS (release) a failpoint is nothing at all. Otherwise it asks
// the table below, which tests fill by hand and the program from --failpoints:
//   "name=crash"       kill the process as kill -9 would
//   "name=error"       throw FileError as a failing disk would
//   "name=lost-gpu"    throw RunError as a GPU that is lost would
//   "name=sleep:200"   wait for 200 ms, as a slow disk or a busy core would
//   "name=error@3"     only at the third time the place is reached
// Several are separated by ';'. All functions may be called from several threads.
#pragma once

#include <string>
#include <string_view>

namespace cohort {

// Replaces the table; "" clears it. Throws ConfigError on a malformed text, or when the program
// was built without failpoints and the text is not empty.
void set_failpoints(std::string_view text);

namespace detail {
void reach_failpoint(std::string_view name);
}  // namespace detail

}  // namespace cohort

#ifdef COHORT_FAILPOINTS
#define COHORT_FAILPOINT(name) ::cohort::detail::reach_failpoint(name)
#else
#define COHORT_FAILPOINT(name) static_cast<void>(0)
#endif
