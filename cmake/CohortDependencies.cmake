# Outside libraries. Required ones fail the configuration; optional ones switch a part off, which
# the summary at the end says.
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS SSL Crypto)
find_package(ZLIB REQUIRED)
find_package(JPEG)
find_package(PNG)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)

# Cairo has no CMake package of its own.
find_package(PkgConfig)
if(PkgConfig_FOUND)
  pkg_check_modules(CAIRO cairo)
endif()

# Boost.Asio, headers alone. Whoever includes it does so with the same settings.
find_path(COHORT_BOOST_INCLUDE boost/asio/io_context.hpp REQUIRED)
mark_as_advanced(COHORT_BOOST_INCLUDE)
add_library(cohort_asio INTERFACE)
target_include_directories(cohort_asio SYSTEM INTERFACE ${COHORT_BOOST_INCLUDE})
target_compile_definitions(cohort_asio INTERFACE BOOST_ASIO_NO_DEPRECATED
                           BOOST_ERROR_CODE_HEADER_ONLY)
target_link_libraries(cohort_asio INTERFACE Threads::Threads)

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
  include(CohortKernels)
endif()
if(COHORT_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# Formatting, from headers alone: libtorch 2 ships newer fmt headers than the system's library, and
# what counts is that each file is compiled against one of them.
add_library(cohort_format INTERFACE)
target_link_libraries(cohort_format INTERFACE spdlog::spdlog_header_only)
target_compile_definitions(cohort_format INTERFACE FMT_HEADER_ONLY)
