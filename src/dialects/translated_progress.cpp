#include "dialects/translated_progress.h"

#include <utility>

namespace cohort::dialects {
namespace {

class TranslatedProgress final : public engine::Progress {
 public:
  TranslatedProgress(std::unique_ptr<engine::Progress> inner, const FlagNames& names)
      : inner_(std::move(inner)), names_(names) {}

  void begin(const engine::ProgressPlan& plan, Step first_step) override {
    inner_->begin(plan, first_step);
  }
  void step(Step done) override { inner_->step(done); }
  void recorded(const metrics::StepRecord& record) override { inner_->recorded(record); }
  void evaluating(double share) override { inner_->evaluating(share); }
  void evaluated(const metrics::EvaluationRecord& record) override { inner_->evaluated(record); }
  void note(const std::string& line) override { inner_->note(in_words_of(names_, line)); }
  void end() override { inner_->end(); }

 private:
  std::unique_ptr<engine::Progress> inner_;
  const FlagNames& names_;
};

}  // namespace

std::unique_ptr<engine::Progress> translated(std::unique_ptr<engine::Progress> progress,
                                             const FlagNames& names) {
  if (names.empty()) return progress;
  return std::make_unique<TranslatedProgress>(std::move(progress), names);
}

}  // namespace cohort::dialects
