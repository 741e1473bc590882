#include "report/conclusion.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/text.h"
#include "report/axis.h"

namespace cohort {
namespace {

std::string basis(const Evidence& evidence, const std::vector<Contender>& contenders) {
  std::vector<std::string> names;
  for (const Difference& difference : evidence.differences) names.push_back(difference.name);
  std::string text = "This rests on " + counted(evidence.runs.size(), "run") +
                     (names.empty() ? "" : ", which differ in " + listed(names)) + ".";
  std::size_t most = 0;
  std::size_t fewest = contenders.empty() ? 0 : contenders.front().top1.count;
  for (const Contender& each : contenders) {
    most = std::max(most, each.top1.count);
    fewest = std::min(fewest, each.top1.count);
  }
  if (most > 1) {
    text += " Each setting was run " +
            (fewest == most ? std::to_string(most)
                            : std::to_string(fewest) + " to " + std::to_string(most)) +
            " times; accuracies of a setting are means over these runs.";
  } else if (evidence.runs.size() > 1) {
    text +=
        " Each setting was run once: how much of a difference is due to chance in training "
        "cannot be told from these runs.";
  }
  return text;
}

std::string what_counts(const Evidence& evidence) {
  std::set<std::string> kinds;
  for (const RunResult& result : evidence.results) {
    if (!result.top1()) continue;
    kinds.insert(result.server_top1 ? "of the server's last version"
                 : result.last_top1 ? "of the last evaluation"
                                    : "of the workers' last dumped models, on average");
  }
  return listed(std::vector<std::string>(kinds.begin(), kinds.end()));
}

std::string best(const Evidence& evidence, const std::vector<Contender>& contenders) {
  const Contender& first = contenders.front();
  std::string text = std::string(contenders.size() > 1 ? "The highest" : "The") + " final " +
                     evaluated_on(evidence.runs) + " accuracy (" + what_counts(evidence) + ") is " +
                     percent(first.top1.mean) + ": " + first.name;
  if (first.top1.count > 1) {
    text += " (standard deviation " + fixed_number(100 * first.top1.deviation, 2) + " points)";
  }
  if (contenders.size() < 2) return text + ".";
  const Contender& second = contenders[1];
  const double difference = first.top1.mean - second.top1.mean;
  const double error = error_of_difference(first, second);
  text += ". It is " + fixed_number(100 * difference, 2) + " points above the next, " +
          second.name + " (" + percent(second.top1.mean) + ")";
  if (error == 0) return text + ".";
  return text + "; the standard error of that difference is " + fixed_number(100 * error, 2) +
         " points, so it is " + (significantly_above(first, second) ? "" : "not ") + "significant.";
}

std::string lower_ones(const std::vector<Contender>& contenders) {
  const Contender& first = contenders.front();
  if (contenders.size() < 3 || first.error == 0) return "";
  std::vector<std::string> lower;
  for (const Contender& each : contenders) {
    if (significantly_above(first, each)) {
      lower.push_back(each.name + " (" + percent(each.top1.mean) + ")");
    }
  }
  if (lower.empty()) {
    return "No other is significantly lower than the best: all lie within two standard errors of "
           "the difference to it.";
  }
  if (lower.size() + 1 == contenders.size()) return "All others are significantly lower.";
  constexpr std::size_t kMostNamed = 8;
  const std::size_t count = lower.size();
  if (count > kMostNamed) {
    return std::to_string(count) + " of the " + std::to_string(contenders.size() - 1) +
           " others are significantly lower, the rest are not.";
  }
  return "Significantly lower than the best " + std::string(count == 1 ? "is " : "are ") +
         listed(lower) + "; the rest are not.";
}

// "swamp-server fifo: 98.50% with pull-probability 0, 91.20% with 1": accuracies by the settings
// that differ, when these are one or two.
std::vector<std::string> by_settings(const Evidence& evidence,
                                     const std::vector<Contender>& contenders) {
  std::vector<std::size_t> wanted;  // places in Repetition::values
  std::vector<const Difference*> settings;
  for (const Difference& difference : evidence.differences) {
    if (difference.name == "seed") continue;
    wanted.push_back(wanted.size());
    settings.push_back(&difference);
  }
  if (wanted.empty() || wanted.size() > 2 || contenders.size() < 2) return {};
  if (wanted.size() == 1 && contenders.size() < 3) return {};  // said already
  std::vector<std::string> outer{""};
  if (wanted.size() == 2) {
    std::set<std::string, decltype(&natural_less)> values(&natural_less);
    for (const Contender& each : contenders) values.insert(each.repetition.values[0]);
    outer = std::vector<std::string>(values.begin(), values.end());
  }
  const std::size_t inner = wanted.back();
  std::vector<std::string> sentences;
  for (const std::string& value : outer) {
    std::map<std::string, double, decltype(&natural_less)> means(&natural_less);
    for (const Contender& each : contenders) {
      if (wanted.size() == 2 && each.repetition.values[0] != value) continue;
      means[each.repetition.values[inner]] = each.top1.mean;
    }
    std::vector<std::string> parts;
    parts.reserve(means.size());
    bool named = false;
    for (const auto& [setting, mean] : means) {
      std::string part = percent(mean);
      if (!setting.empty()) {
        part += " with " + (named ? "" : settings.back()->name + " ") + setting;
        named = true;
      }
      parts.push_back(std::move(part));
    }
    const std::string who =
        wanted.size() == 2 ? settings.front()->name + " " + value : "Final accuracy";
    sentences.push_back(who + ": " + listed(parts) + ".");
  }
  return sentences;
}

std::string shocks(const Evidence& evidence) {
  std::vector<std::string> parts;
  std::size_t without = 0;
  bool repeated = false;
  for (std::size_t i = 0; i < evidence.results.size(); ++i) {
    const RunResult& result = evidence.results[i];
    if (evidence.runs[i].dumps.workers.empty()) continue;
    if (result.shocks.empty()) {
      ++without;
      continue;
    }
    std::vector<std::string> workers;
    for (const auto& [rank, found] : result.shocks) {
      repeated = repeated || found.size() > 1;
      workers.push_back("worker " + std::to_string(rank) + ": " + std::to_string(found.size()));
    }
    parts.push_back(evidence.labels[i] + ": " + std::to_string(result.shock_count()) + " (" +
                    join(workers, ", ") + ")");
  }
  if (parts.empty() && without == 0) return "";
  const std::string what =
      " (a worker's test loss rising by more than half, and beyond its usual fluctuation, from one "
      "dumped model to the next)";
  if (parts.empty()) return "No shocks" + what + " are seen.";
  return (repeated ? "Repeated shocks" : "Shocks") + what + " are seen in " + join(parts, "; ") +
         "." +
         (without == 0 ? "" : " None in the " + counted(without, "other run") + " with dumps.");
}

constexpr double kMuchBetter = 0.9;  // a loss of that share is worth a word

std::vector<std::string> freezes(const Evidence& evidence) {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < evidence.results.size(); ++i) {
    if (!evidence.results[i].freeze) continue;
    const Freeze& freeze = *evidence.results[i].freeze;
    std::string text = "The server of " + evidence.labels[i] +
                       " stopped improving early: version " + std::to_string(freeze.version) +
                       ", its last, came after " + short_number(freeze.last_seconds) + " of " +
                       short_number(freeze.end_seconds) + " s (" +
                       fixed_number(100 * freeze.share(), 0) + "%), with a test loss of " +
                       short_number(freeze.loss) + ". ";
    if (freeze.best_later_loss) {
      text += "The best model that a worker dumped afterwards has " +
              short_number(*freeze.best_later_loss) +
              (*freeze.best_later_loss < kMuchBetter * freeze.loss ? ", and was not taken." : ".");
    }
    sentences.push_back(std::move(text));
  }
  return sentences;
}

std::string labels_where(const Evidence& evidence, bool (*is_so)(const RunResult&)) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < evidence.results.size(); ++i) {
    if (is_so(evidence.results[i])) labels.push_back(evidence.labels[i]);
  }
  return listed(labels);
}

std::string speed(const Evidence& evidence) {
  std::optional<std::size_t> fastest;
  std::optional<std::size_t> slowest;
  for (std::size_t i = 0; i < evidence.results.size(); ++i) {
    const auto& each = evidence.results[i].samples_per_second;
    if (!each || !(*each > 0)) continue;
    if (!fastest || *each > *evidence.results[*fastest].samples_per_second) fastest = i;
    if (!slowest || *each < *evidence.results[*slowest].samples_per_second) slowest = i;
  }
  if (!fastest || fastest == slowest) return "";
  const double most = *evidence.results[*fastest].samples_per_second;
  const double least = *evidence.results[*slowest].samples_per_second;
  std::string text = "Training ran at " + fixed_number(least, 0) + " (" +
                     evidence.labels[*slowest] + ") to " + fixed_number(most, 0) +
                     " samples a second (" + evidence.labels[*fastest] + "), a ratio of " +
                     fixed_number(most / least, 2) + ".";
  std::set<std::string> workers;
  for (const RunRecords& run : evidence.runs) workers.insert(run.setting("workers"));
  if (workers.size() > 1) text += " The numbers of workers differ.";
  return text;
}

}  // namespace

std::vector<std::string> conclusions(const Evidence& evidence) {
  const std::vector<Contender> contenders = contenders_of(evidence);
  std::vector<std::string> sentences = {basis(evidence, contenders)};
  const auto add = [&](std::string text) {
    if (!text.empty()) sentences.push_back(std::move(text));
  };
  const auto add_all = [&](const std::vector<std::string>& texts) {
    sentences.insert(sentences.end(), texts.begin(), texts.end());
  };
  if (contenders.empty()) {
    add("No run has a " + evaluated_on(evidence.runs) + " accuracy yet.");
  } else {
    add(best(evidence, contenders));
    add(lower_ones(contenders));
    add_all(by_settings(evidence, contenders));
  }
  add(shocks(evidence));
  add_all(freezes(evidence));
  const std::string diverged =
      labels_where(evidence, [](const RunResult& result) { return result.diverged; });
  if (!diverged.empty()) add("Diverged (the last loss is not a number): " + diverged + ".");
  add(speed(evidence));
  const std::string unfinished =
      labels_where(evidence, [](const RunResult& result) { return !result.finished; });
  if (!unfinished.empty()) {
    add("Not finished, so their numbers are those of their last records: " + unfinished + ".");
  }
  return sentences;
}

}  // namespace cohort
