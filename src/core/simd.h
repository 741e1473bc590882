// COHORT_SIMD_CLONES before a function compiles it once for each instruction set and picks the
// best one at load time, so that one binary is fast on every x86-64. Results are the same bits on
// all of them because the build forbids contraction (see cmake/CohortCompiler.cmake).
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COHORT_SIMD_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define COHORT_SIMD_CLONES
#endif
