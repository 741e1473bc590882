#include "methods/error_feedback.h"

#include <ATen/ops/from_blob.h>

#include <utility>
#include <vector>

#include "core/error.h"

namespace cohort::methods {
namespace {

class ErrorFeedback final : public GroupCodec {
 public:
  ErrorFeedback(std::unique_ptr<GroupCodec> codec, std::size_t numel)
      : codec_(std::move(codec)), error_(numel) {}

  void exchange(std::span<const float> move, const StepInfo& info, std::span<float> sent,
                std::span<float> mean) override {
    COHORT_CHECK(move.size() == error_.size() && sent.size() == error_.size(),
                 "error feedback got a vector of another length than its memory");
    for (std::size_t i = 0; i < error_.size(); ++i) error_[i] += move[i];
    codec_->exchange(error_, info, sent, mean);
    for (std::size_t i = 0; i < error_.size(); ++i) error_[i] -= sent[i];
  }

  void visit_state(StateVisitor& visitor) override {
    visitor.tensor(
        "compressed.error",
        at::from_blob(error_.data(), {static_cast<std::int64_t>(error_.size())}, at::kFloat));
    codec_->visit_state(visitor);
  }

 private:
  std::unique_ptr<GroupCodec> codec_;
  std::vector<float> error_;  // what this rank has moved and not sent
};

}  // namespace

std::unique_ptr<GroupCodec> feed_errors_back(std::unique_ptr<GroupCodec> codec, std::size_t numel) {
  return std::make_unique<ErrorFeedback>(std::move(codec), numel);
}

}  // namespace cohort::methods
