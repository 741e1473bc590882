#include "core/error.h"

#include <cstdio>
#include <cstdlib>

namespace cohort::detail {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "cohort: internal error at %s:%d: %s [%s]\n", file, line, message.c_str(),
               condition);
  std::abort();
}

}  // namespace cohort::detail
