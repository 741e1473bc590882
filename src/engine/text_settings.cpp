#include "engine/text_settings.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "data/text_sets.h"
#include "engine/assemble.h"
#include "methods/method_traits.h"

namespace cohort::engine {
namespace {

// A text's columns are read side by side, so that few are enough; more would begin more often
// without knowing what came before.
constexpr std::int64_t kMaxTestColumns = 10;

}  // namespace

data::TextRequest text_request(const config::RunConfig& config) {
  if (config.eval_split != "test" && !data::is_text_set(config.data)) {
    throw ConfigError("--eval-split " + config.eval_split + ": data set '" + config.data +
                      "' has only a test set to evaluate on");
  }
  const int workers = static_cast<int>(std::max<std::int64_t>(1, config.workers));
  return {.columns = batch_of_all(config, workers),
          .test_columns = std::min(config.eval_batch, kMaxTestColumns),
          .piece = config.bptt,
          .lowercase = config.lowercase,
          .evaluate_validation = config.eval_split == "validation"};
}

void check_text_settings(const config::RunConfig& config) {
  if (methods::traits_of(config.method).servers == methods::MethodTraits::Servers::kBestModel) {
    throw ConfigError("--method " + config.method +
                      " compares models on single samples, which a text has not; use another "
                      "--method, see `cohort list methods`");
  }
  if (config.partition != "none") {
    throw ConfigError("--partition " + config.partition +
                      ": each worker has columns of its own of a text anyway; leave --partition "
                      "out");
  }
  if (config.accumulate > 1) {
    throw ConfigError("--accumulate is not for text: give a larger --batch or --bptt");
  }
  if (config.target_accuracy > 0) {
    throw ConfigError("--target-accuracy is not for text, which is judged by its perplexity");
  }
}

}  // namespace cohort::engine
