# The GPU kernels of src/kernels. Sets COHORT_KERNELS_FOUND where libtorch computes on NVIDIA GPUs and
# there is a compiler for them.
set(COHORT_WITH_KERNELS AUTO CACHE STRING "AUTO: where libtorch has CUDA and nvcc is found; ON; OFF")
set(COHORT_KERNELS_FOUND OFF)
if(COHORT_WITH_KERNELS STREQUAL "ON" OR (COHORT_WITH_KERNELS STREQUAL "AUTO" AND TARGET torch_cuda))
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80 90)  # bfloat16 begins with 80
    endif()
    enable_language(CUDA)
    set(COHORT_KERNELS_FOUND ON)
  elseif(COHORT_WITH_KERNELS STREQUAL "ON")
    message(FATAL_ERROR "COHORT_WITH_KERNELS=ON but nvcc was not found; name it with CMAKE_CUDA_COMPILER")
  endif()
endif()
