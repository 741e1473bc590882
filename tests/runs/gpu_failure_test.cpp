#include "runs/gpu_failure.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "core/error.h"
#include "runs/memory.h"

namespace cohort::runs {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// As libtorch 2.11 words it.
constexpr const char* kNoMemory =
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 1 has a total capacity of 139.81 GiB of "
    "which 9.50 GiB is free. Including non-PyTorch memory, this process has 130.31 GiB memory in "
    "use. Of the allocated memory 120.00 GiB is allocated by PyTorch, and 9.00 GiB is reserved by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.";

TEST(GpuFailure, SaysWhatWasAskedForAndWhatThereIs) {
  EXPECT_EQ(
      gpu_memory_text(kNoMemory),
      "out of memory: 20.00 GiB more were needed in one piece on GPU 1, which has 139.81 GiB, "
      "of which 9.50 GiB are free");
  EXPECT_EQ(
      gpu_memory_text("CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 15.78 GiB "
                      "total capacity; 14.00 GiB already allocated; 100.25 MiB free; 14.20 "
                      "GiB reserved in total by PyTorch) If reserved memory is >> ..."),
      "out of memory: 512.00 MiB more were needed in one piece on GPU 0, which has 15.78 GiB, "
      "of which 100.25 MiB are free");
}

TEST(GpuFailure, KnowsMemoryThatOthersThanLibtorchAskFor) {
  for (const char* error :
       {"the GPU refused memory: out of memory", "CUDA error: out of memory\nCUDA kernel errors",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "rank 3 failed at step 0, computing: the GPU refused memory: out of memory"}) {
    const auto text = gpu_memory_text(error);
    ASSERT_TRUE(text) << error;
    EXPECT_THAT(*text, AllOf(HasSubstr("out of memory on the GPU: "), Not(HasSubstr("\n"))));
    EXPECT_FALSE(lost_gpu_text(error)) << error;
  }
  for (const char* error : {"rank 1 left: out of memory", "CUDA error: invalid argument", ""}) {
    EXPECT_FALSE(gpu_memory_text(error)) << error;
  }
}

TEST(GpuFailure, MemoryOfAGpuHasItsOwnAdvice) {
  const c10::Error torch({"malloc", "CUDACachingAllocator.cpp", 1}, kNoMemory);
  EXPECT_THAT(out_of_memory_text(torch).value(),
              AllOf(HasSubstr("20.00 GiB more"), HasSubstr("Lower --batch"), HasSubstr("--workers"),
                    HasSubstr("--precision bf16"), Not(HasSubstr("PYTORCH_ALLOC_CONF"))));
  const RunError ours("the GPU refused memory: out of memory");
  EXPECT_THAT(out_of_memory_text(ours).value(), HasSubstr("--precision bf16"));
  EXPECT_THAT(out_of_memory_text(std::bad_alloc()).value(),
              AllOf(HasSubstr("this machine has"), Not(HasSubstr("--precision"))));
  EXPECT_FALSE(out_of_memory_text(RunError("the loss is not a number")));
}

TEST(GpuFailure, KnowsWhenAGpuIsLost) {
  for (const char* error :
       {"CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be",
        "the GPU refused a sum over ranks: unspecified launch failure",
        "GPU 0, all_reduce of 8 bytes: CUDA says uncorrectable ECC error encountered",
        "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"}) {
    const auto text = lost_gpu_text(error);
    ASSERT_TRUE(text) << error;
    EXPECT_THAT(*text, AllOf(HasSubstr("nothing more on that GPU"), Not(HasSubstr("\n"))));
  }
  for (const char* error : {"CUDA error: invalid argument", "the disk said: unknown error", ""}) {
    EXPECT_FALSE(lost_gpu_text(error)) << error;
  }
}

}  // namespace
}  // namespace cohort::runs
