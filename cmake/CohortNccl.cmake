# NCCL and the CUDA runtime, for sums in the GPUs' memory. Sets COHORT_NCCL_FOUND, and then the
# target cohort_nccl for those who include <nccl.h>. The program must not load a second copy of
# either: NCCL is taken from beside libtorch first, where PyTorch's wheels put it, and the runtime is
# the toolkit's, which libtorch's package links into every program.
set(COHORT_WITH_NCCL AUTO CACHE STRING "AUTO: where libtorch has CUDA and NCCL is found; ON; OFF")
set(COHORT_NCCL_FOUND OFF)
if(COHORT_WITH_NCCL STREQUAL "ON" OR (COHORT_WITH_NCCL STREQUAL "AUTO" AND TARGET torch_cuda))
  find_package(CUDAToolkit QUIET)
  file(GLOB _cuda_beside ${TORCH_INSTALL_PREFIX}/../nvidia/cu[0-9]*)
  set(_cuda_places ${TORCH_INSTALL_PREFIX}/../nvidia/cuda_runtime ${_cuda_beside}
      ${CUDAToolkit_TARGET_DIR} /usr/local/cuda)
  set(_nccl_places ${TORCH_INSTALL_PREFIX}/../nvidia/nccl ${_cuda_places})
  # Some wheels bring the runtime's header without those it includes; headers may be the toolkit's.
  find_path(COHORT_CUDA_INCLUDE crt/host_defines.h
            HINTS ${CUDAToolkit_INCLUDE_DIRS} ${_cuda_places} PATH_SUFFIXES include)
  # The very path, for the same file in two folders has no order of run paths.
  set(COHORT_CUDA_LIBRARY ${CUDA_cudart_LIBRARY})
  find_library(COHORT_CUDA_LIBRARY NAMES_PER_DIR
               NAMES cudart libcudart.so.13 libcudart.so.12 libcudart.so.11.0
               HINTS ${_cuda_places} PATH_SUFFIXES lib lib64)
  find_path(COHORT_NCCL_INCLUDE nccl.h HINTS ${_nccl_places} PATH_SUFFIXES include)
  find_library(COHORT_NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR
               HINTS ${_nccl_places} PATH_SUFFIXES lib lib64)
  mark_as_advanced(COHORT_CUDA_INCLUDE COHORT_CUDA_LIBRARY COHORT_NCCL_INCLUDE COHORT_NCCL_LIBRARY)
  if(COHORT_CUDA_INCLUDE AND COHORT_CUDA_LIBRARY AND COHORT_NCCL_INCLUDE AND COHORT_NCCL_LIBRARY)
    set(COHORT_NCCL_FOUND ON)
    add_library(cohort_nccl INTERFACE)
    target_include_directories(cohort_nccl SYSTEM INTERFACE ${COHORT_NCCL_INCLUDE}
                               ${COHORT_CUDA_INCLUDE})
    target_compile_definitions(cohort_nccl INTERFACE COHORT_WITH_NCCL)
    target_link_libraries(cohort_nccl INTERFACE ${COHORT_NCCL_LIBRARY} ${COHORT_CUDA_LIBRARY})
  elseif(COHORT_WITH_NCCL STREQUAL "ON")
    message(FATAL_ERROR "COHORT_WITH_NCCL=ON but NCCL or the CUDA runtime was not found")
  endif()
endif()
