#include "models/option_checks.h"

#include <string>

#include "core/error.h"

namespace cohort::models {

void check_options(std::string_view model, const ModelOptions& options, std::int64_t minimum_size) {
  const std::string name(model);
  if (options.text && !takes_text(model)) {
    throw ConfigError("model '" + name + "' takes images, but the data are text: use --model lstm");
  }
  if (!options.text && takes_text(model)) {
    throw ConfigError("model '" + name +
                      "' takes text, but the data are images: use --data wikitext-2, ptb or text");
  }
  if (options.channels < 1 || options.classes < 1) {
    throw ConfigError("model '" + name + "' needs at least one channel and one class, got " +
                      std::to_string(options.channels) + " and " + std::to_string(options.classes));
  }
  if (options.dropout >= 1) {
    throw ConfigError("model '" + name + "': dropout must be below 1, got " +
                      std::to_string(options.dropout));
  }
  if (options.height < minimum_size || options.width < minimum_size) {
    const std::string smallest = std::to_string(minimum_size);
    throw ConfigError("model '" + name + "' needs images of at least " + smallest + "x" + smallest +
                      " pixels, got " + std::to_string(options.height) + "x" +
                      std::to_string(options.width) + "; enlarge them with --image-size " +
                      smallest + " (or more), or choose a model for small images");
  }
}

double dropout_or(const ModelOptions& options, double standard) {
  return options.dropout < 0 ? standard : options.dropout;
}

}  // namespace cohort::models
