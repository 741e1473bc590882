// Makes the numerical libraries take the right code path on CPUs newer than themselves. They
// decide in their constructors, before main(), and listen to environment variables only; so this
// runs from .preinit_array, which the loader calls before any library's constructor.
//
// OpenBLAS 0.3.21 takes a CPU it does not know for a Prescott (SSE3) and is four to six times
// slower then. oneDNN 2.6 ends with an illegal instruction on bf16 when the CPU has AMX. What the
// user has set stays as it is.
#include <cpuid.h>
#include <stdlib.h>

namespace {

bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}

void choose_code_paths(int, char**, char**) {
  constexpr int kKeepTheUsers = 0;
  if (has_avx512()) {
    setenv("OPENBLAS_CORETYPE", "SkylakeX", kKeepTheUsers);
  } else if (has_avx2()) {
    setenv("OPENBLAS_CORETYPE", "Haswell", kKeepTheUsers);
  }
  setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16", kKeepTheUsers);
}

__attribute__((section(".preinit_array"), used)) void (*const kPreinit)(int, char**, char**) =
    choose_code_paths;

}  // namespace
