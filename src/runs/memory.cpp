#include "runs/memory.h"

#include <c10/util/Exception.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <new>

#include "core/error.h"
#include "runs/blas_memory.h"
#include "runs/gpu_failure.h"

namespace cohort::runs {
namespace {

constexpr double kGiB = 1 << 30;

// A line of /proc/meminfo, in bytes.
double memory_of_host(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  double kib = 0;
  while (file >> word) {
    if (word == name + ":" && file >> kib) return kib * 1024;
  }
  return 0;
}

std::string host_text() {
  std::string text =
      fmt::format("this machine has {:.1f} GiB, of which {:.1f} GiB are free",
                  memory_of_host("MemTotal") / kGiB, memory_of_host("MemAvailable") / kGiB);
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text += fmt::format(", and ulimit -v permits {:.1f} GiB of addresses",
                        static_cast<double>(limit.rlim_cur) / kGiB);
  }
  return text;
}

constexpr const char* kMemoryAdvice =
    "Lower --batch (--accumulate makes up for it), --eval-batch if it was evaluating, --workers or "
    "--loader-threads";

}  // namespace

std::optional<std::string> out_of_memory_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return fmt::format("out of memory: {}. {}", host_text(), kMemoryAdvice);
  }
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string what = torch != nullptr ? torch->what_without_backtrace() : error.what();
  if (const auto text = gpu_memory_text(what)) {
    return fmt::format("{}. {}; or compute in half the memory: --precision bf16", *text,
                       kMemoryAdvice);
  }
  if (torch == nullptr) return std::nullopt;
  constexpr std::string_view kTried = "you tried to allocate ";
  const std::size_t tried = what.find(kTried);
  if (tried == std::string::npos) return std::nullopt;
  const double bytes = std::strtod(what.c_str() + tried + kTried.size(), nullptr);
  return fmt::format("out of memory: {:.1f} GiB more were needed in one piece; {}. {}",
                     bytes / kGiB, host_text(), kMemoryAdvice);
}

void require_blas_memory(std::int64_t workers) {
  if (can_map(static_cast<std::size_t>(workers) * kBlasBuffer)) return;
  throw ConfigError(fmt::format(
      "ulimit -v leaves no room for the {} MiB that OpenBLAS takes for each worker of this process "
      "({}): raise it (ulimit -v unlimited), or lower --workers",
      kBlasBuffer >> 20, workers));
}

}  // namespace cohort::runs
