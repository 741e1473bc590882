#include "dialects/swamp_progress.h"

#include <spdlog/fmt/fmt.h>

namespace cohort::dialects {
namespace {

class SwampProgress final : public engine::Progress {
 public:
  SwampProgress(std::FILE* out, std::FILE* notes, const SwampProgressOptions& options)
      : out_(out), notes_(notes), options_(options) {}

  void begin(const engine::ProgressPlan&, Step) override {}

  void step(Step done) override {
    const Step epoch = (done - 1) / options_.steps_per_epoch;
    const Step batch = (done - 1) % options_.steps_per_epoch;
    if (options_.log_interval > 0 && batch % options_.log_interval == 0) {
      print(fmt::format("Current trainer id: {}, epoch: {}, batch id: {}\n", options_.trainer,
                        epoch, batch));
    }
    if (batch + 1 == options_.steps_per_epoch) {
      print(fmt::format("trainer {} done epoch {}\n", options_.trainer, epoch));
    }
  }

  void recorded(const metrics::StepRecord&) override {}
  void evaluated(const metrics::EvaluationRecord&) override {}
  void note(const std::string& line) override { fmt::print(notes_, "{}\n", line); }
  void end() override {}

 private:
  void print(const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  std::FILE* notes_;
  SwampProgressOptions options_;
};

}  // namespace

std::unique_ptr<engine::Progress> make_swamp_progress(std::FILE* out, std::FILE* notes,
                                                      const SwampProgressOptions& options) {
  return std::make_unique<SwampProgress>(out, notes, options);
}

}  // namespace cohort::dialects
