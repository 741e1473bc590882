# How every target is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Lines for backtraces; whoever steps through variables configures with -g.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
if(COHORT_UNITY)
  # Most of a file's compile time is its headers, which the files of a batch share. So names in
  # unnamed namespaces are unique within a folder.
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the source, so that every clone and build folder shares what was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=true ${CCACHE_PROGRAM})
endif()

add_library(cohort_options INTERFACE)
target_compile_options(cohort_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow
  # The same sums on every CPU: no contraction of a*b+c, whatever instruction set a clone uses.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms in std::string and std::vector: GCC bugs 105651, 105329, 105562.
  target_compile_options(cohort_options INTERFACE -Wno-restrict -Wno-stringop-overflow
                         -Wno-maybe-uninitialized)
endif()
if(COHORT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # To the compiler a file of a batch is a header, where a class must have no unnamed parts.
  target_compile_options(cohort_options INTERFACE -Wno-subobject-linkage)
endif()
if(COHORT_FAILPOINTS)
  target_compile_definitions(cohort_options INTERFACE COHORT_FAILPOINTS)
endif()

if(COHORT_SANITIZE)
  add_compile_options(-fsanitize=${COHORT_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${COHORT_SANITIZE})
  if(COHORT_SANITIZE MATCHES "address")
    add_compile_definitions(_GLIBCXX_ASSERTIONS)
  endif()
  if(COHORT_BUILD_FUZZERS)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-fstack-protector-strong -D_FORTIFY_SOURCE=2)
  add_link_options(-Wl,-z,relro,-z,now)
endif()
