#include "methods/flat_model.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <cstring>

#include "core/error.h"

namespace cohort::methods {
namespace {

// Calls use(element of the arena, element of the flat vector, count) for each piece that is
// contiguous in both.
template <class Use>
void for_each_piece(const Replica& replica, Use use) {
  std::int64_t place = 0;
  for (const Replica::Segment& segment : replica.segments()) {
    use(segment.range.begin, place, segment.range.size);
    place += segment.range.size;
  }
}

std::int64_t parameter_count(const Replica& replica) {
  std::int64_t count = 0;
  for (const Replica::Segment& segment : replica.segments()) count += segment.range.size;
  return count;
}

std::size_t bytes(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

}  // namespace

std::int64_t flat_size(const Replica& replica) {
  return parameter_count(replica) + replica.statistics().numel();
}

void copy_model_to(std::span<float> values, const Replica& replica) {
  COHORT_CHECK(static_cast<std::int64_t>(values.size()) == flat_size(replica), "another model");
  const at::Tensor parameters = replica.parameters().detach().cpu();
  const at::Tensor statistics = replica.statistics().detach().cpu();
  for_each_piece(replica, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::memcpy(values.data() + to, parameters.data_ptr<float>() + from, bytes(count));
  });
  std::memcpy(values.data() + parameter_count(replica), statistics.data_ptr<float>(),
              bytes(statistics.numel()));
}

void copy_model_from(std::span<const float> values, Replica& replica) {
  COHORT_CHECK(static_cast<std::int64_t>(values.size()) == flat_size(replica), "another model");
  const c10::NoGradGuard no_grad;
  // On a device the padding of what is there stays as it is.
  const at::Tensor parameters = replica.parameters().detach().cpu();
  const at::Tensor statistics = replica.statistics().detach().cpu();
  for_each_piece(replica, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    std::memcpy(parameters.data_ptr<float>() + to, values.data() + from, bytes(count));
  });
  std::memcpy(statistics.data_ptr<float>(), values.data() + parameter_count(replica),
              bytes(statistics.numel()));
  if (replica.parameters().is_cpu()) return;  // these were no copies
  replica.parameters().copy_(parameters);
  replica.statistics().copy_(statistics);
  replica.refresh_copies();
}

}  // namespace cohort::methods
