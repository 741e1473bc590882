#include "report/conclusion.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/text.h"
#include "report/axis.h"

namespace cohort::report {
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
            " times; accuracies of a setting are means over these runs ± their standard deviation.";
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
                     percent(first.top1) + ": " + first.name;
  if (contenders.size() < 2) return text + ".";
  const Contender& second = contenders[1];
  const double difference = first.top1.mean - second.top1.mean;
  const double error = error_of_difference(first, second);
  text += ". It is " + fixed_number(100 * difference, 2) + " points above the next, " +
          second.name + " (" + percent(second.top1) + ")";
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
      lower.push_back(each.name + " (" + percent(each.top1) + ")");
    }
  }
  if (lower.empty()) {
    return "No other is significantly lower than the best: all lie within two standard errors of "
           "the difference to it.";
  }
  if (lower.size() + 1 == contenders.size()) return "All others are significantly lower.";
  constexpr std::size_t kMaxNamed = 8;
  const std::size_t count = lower.size();
  if (count > kMaxNamed) {
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
    std::map<std::string, Spread, decltype(&natural_less)> means(&natural_less);
    for (const Contender& each : contenders) {
      if (wanted.size() == 2 && each.repetition.values[0] != value) continue;
      means[each.repetition.values[inner]] = each.top1;
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

// The name of some runs of equal settings, and the mean of what they have of something.
struct Named {
  std::string name;
  Spread value;
};

std::vector<Named> means_of(const Evidence& evidence, const std::vector<Repetition>& settings,
                            const std::function<std::optional<double>(std::size_t run)>& what) {
  std::vector<Named> result;
  for (const Repetition& each : settings) {
    std::vector<double> values;
    for (const std::size_t run : each.runs) {
      if (const auto value = what(run)) values.push_back(*value);
    }
    if (values.size() == each.runs.size()) {
      result.push_back({name_of(each, evidence), spread_of(values)});
    }
  }
  return result;
}

std::string speed(const Evidence& evidence) {
  std::vector<Named> all = means_of(
      evidence, repetitions(evidence.runs.size(), evidence.differences), [&](std::size_t run) {
        const auto& each = evidence.results[run].samples_per_second;
        return each && *each > 0 ? each : std::nullopt;
      });
  if (all.size() < 2) return "";
  const auto [least, most] = std::minmax_element(
      all.begin(), all.end(),
      [](const Named& a, const Named& b) { return a.value.mean < b.value.mean; });
  std::string text = "Training ran at " + fixed_number(least->value.mean, 0) + " (" + least->name +
                     ") to " + fixed_number(most->value.mean, 0) + " samples a second (" +
                     most->name + "), a ratio of " +
                     fixed_number(most->value.mean / least->value.mean, 2) + ".";
  std::set<std::string> workers;
  for (const RunRecords& run : evidence.runs) workers.insert(run.setting("workers"));
  if (workers.size() > 1) text += " The numbers of workers differ.";
  return text;
}

// "To 85% test accuracy, which all reach: a 12.0 s and 46.0 MB, b 9.10 s and 1.50 MB."
std::string cost_of_accuracy(const Evidence& evidence) {
  if (evidence.runs.size() < 2) return "";
  double target = 1;
  for (const RunResult& result : evidence.results) {
    if (!result.best_top1) return "";
    target = std::min(target, *result.best_top1);
  }
  target = std::floor(100 * target + 1e-9) / 100;
  if (!(target > 0)) return "";
  std::map<std::size_t, Reached> reached;
  for (std::size_t i = 0; i < evidence.runs.size(); ++i) {
    reached[i] = reached_at(evidence.runs[i], target);
  }
  const auto settings = repetitions(evidence.runs.size(), evidence.differences);
  const auto seconds =
      means_of(evidence, settings, [&](std::size_t run) { return reached[run].seconds; });
  const auto bytes =
      means_of(evidence, settings, [&](std::size_t run) { return reached[run].megabytes; });
  const auto text = [](const Spread& spread) {
    return short_number(spread.mean) +
           (spread.count > 1 ? " ± " + short_number(spread.deviation) : "");
  };
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    parts.push_back(seconds[i].name + " " + text(seconds[i].value) + " s and " +
                    text(bytes[i].value) + " MB");
  }
  return "To " + fixed_number(100 * target, 0) + "% " + evaluated_on(evidence.runs) +
         " accuracy, the highest whole percent that all have reached (seen at an evaluation; bytes "
         "sent by all workers until then): " +
         listed(parts) + ".";
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
  add(cost_of_accuracy(evidence));
  add(speed(evidence));
  const std::string unfinished =
      labels_where(evidence, [](const RunResult& result) { return !result.finished; });
  if (!unfinished.empty()) {
    add("Not finished, so their numbers are those of their last records: " + unfinished + ".");
  }
  return sentences;
}

}  // namespace cohort::report
