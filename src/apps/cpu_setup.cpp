// Makes the numerical libraries take the right code path on CPUs newer than themselves.
//
// OpenBLAS 0.3.21 takes a CPU it does not know for a Prescott (SSE3) and is four to six times
// slower then. oneDNN 2.6 ends with an illegal instruction on bf16 when the CPU has AMX. Both
// decide in their constructors, before main(), by getenv(). Setting variables from .preinit_array
// is too early (glibc 2.36 sets `environ` anew afterwards), and starting the program a second time
// doubles the time libtorch needs to load. So this program has a getenv() of its own, which the
// loader prefers to libc's: it answers as libc would, and knows two answers more. What the user has
// set stays as it is.
//
// OpenBLAS also takes its buffers before main(), and where `ulimit -v` denies them it asks for
// ever. Its first question is where that can be noticed.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runs/blas_memory.h"

namespace {

// OpenBLAS's name for the newest instruction set that both it and this CPU know; null: let it
// choose.
const char* blas_core() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) return "Haswell";
#endif
  return nullptr;
}

const char* default_answer(std::string_view name) {
  if (name == "OPENBLAS_CORETYPE") return blas_core();
  if (name == "DNNL_MAX_CPU_ISA") return "AVX512_CORE_BF16";
  return nullptr;
}

const char* variable_value(const char* name, std::size_t length) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
      return *entry + length + 1;
    }
  }
  return nullptr;
}

// Ends the program where OpenBLAS would hang: it takes a buffer for each of its threads now, and
// one for the first that computes.
void check_blas_memory() {
  constexpr long kMaxBlasThreads = 128;  // of Debian's
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  long threads = std::min<long>(CPU_COUNT(&allowed), kMaxBlasThreads);
  for (const std::string_view name : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* value = variable_value(name.data(), name.size());
    if (value != nullptr && std::atol(value) > 0) threads = std::min(threads, std::atol(value));
  }
  const auto buffers = static_cast<std::size_t>(threads + 1);
  if (cohort::runs::can_map(buffers * cohort::runs::kBlasBuffer)) return;
  constexpr std::size_t kMiB = cohort::runs::kBlasBuffer >> 20;
  char text[400];
  const int length = std::snprintf(
      text, sizeof text,
      "cohort: ulimit -v leaves too few addresses: besides the libraries, OpenBLAS needs %zu MiB "
      "(%zu for each of %ld threads, and %zu more); raise the limit (ulimit -v "
      "unlimited), or give it fewer threads (OPENBLAS_NUM_THREADS=1)\n",
      buffers * kMiB, kMiB, threads, kMiB);
  static_cast<void>(!::write(STDERR_FILENO, text, static_cast<std::size_t>(length)));
  ::_exit(1);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) char* getenv(const char* name) noexcept {
  const std::size_t length = std::strlen(name);
  static bool asked = false;
  if (!asked && std::string_view(name, length) == "OPENBLAS_CORETYPE") {
    asked = true;
    check_blas_memory();
  }
  const char* value = variable_value(name, length);
  return const_cast<char*>(value != nullptr ? value : default_answer({name, length}));
}
