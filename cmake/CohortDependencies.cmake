# Outside libraries. Required ones fail the configuration; optional ones switch a part off, which
# the summary at the end says.
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(JPEG)
find_package(PNG)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)

# MPI's C interface only: the C++ one is gone from the standard. Finding it takes a C compiler.
include(CheckLanguage)
check_language(C)
if(CMAKE_C_COMPILER)
  enable_language(C)
  find_package(MPI COMPONENTS C)
endif()
if(MPI_C_FOUND)
  add_library(cohort_mpi INTERFACE)  # for those who include <mpi.h>
  target_include_directories(cohort_mpi SYSTEM INTERFACE ${MPI_C_INCLUDE_DIRS})
  target_compile_definitions(cohort_mpi INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(cohort_mpi INTERFACE ${MPI_C_LIBRARIES})
endif()

if(COHORT_WITH_TORCH)
  find_package(Torch REQUIRED)
  # Torch's package adds flags of its own to every target; we want only its libraries.
  set(CMAKE_CXX_STANDARD 20)
  include(CohortNccl)
endif()
if(COHORT_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# Formatting, from headers alone: libtorch 2 ships newer fmt headers than the system's library, and
# what counts is that each file is compiled against one of them.
add_library(cohort_format INTERFACE)
target_link_libraries(cohort_format INTERFACE spdlog::spdlog_header_only)
target_compile_definitions(cohort_format INTERFACE FMT_HEADER_ONLY)
