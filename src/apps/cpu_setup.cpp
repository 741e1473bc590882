// Makes the numerical libraries take the right code path on CPUs newer than themselves.
//
// OpenBLAS 0.3.21 takes a CPU it does not know for a Prescott (SSE3) and is four to six times
// slower then. oneDNN 2.6 ends with an illegal instruction on bf16 when the CPU has AMX. Both
// decide in their constructors, before main(), by getenv(). Setting variables from .preinit_array
// is too early (glibc 2.36 sets `environ` anew afterwards), and starting the program a second time
// doubles the time libtorch needs to load. So this program has a getenv() of its own, which the
// loader prefers to libc's: it answers as libc would, and knows two answers more. What the user has
// set stays as it is.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

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

}  // namespace

extern "C" __attribute__((visibility("default"))) char* getenv(const char* name) noexcept {
  const std::size_t length = std::strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
      return *entry + length + 1;
    }
  }
  return const_cast<char*>(default_answer({name, length}));
}
