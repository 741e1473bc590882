#include "simulation/runner.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "core/clock.h"
#include "planted_bugs.h"

namespace cohort::simulation {
namespace {

using Number = unsigned long long;

struct Failure {
  Seed seed = 0;
  ScheduleResult outcome;
};

struct Result {
  std::uint64_t schedules = 0;
  std::vector<std::uint64_t> counts;
  std::optional<Failure> failure;  // the smallest seed that fails
  double seconds = 0;
};

struct Arguments {
  std::string what;
  Seed first = 0;
  std::uint64_t count = 0;
  bool trace = false;
  int threads = 2;
  std::string bug;
};

// A check inside the machines ends the program: then at least the seed has to be known.
thread_local Seed current_seed = 0;
void tell_seed(int) {
  char text[64];
  const int size = std::snprintf(text, sizeof text, "aborted in schedule %llu\n",
                                 static_cast<Number>(current_seed));
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(size)) < 0) std::_Exit(2);
  std::_Exit(2);
}

class Runner {
 public:
  Runner(const Simulation& simulation, Arguments arguments)
      : simulation_(simulation), arguments_(std::move(arguments)) {}

  int run() {
    if (arguments_.what == "--bugs") return run_bugs();
    if (arguments_.what == "--survey") return run_survey();
    if (arguments_.what == "--twice") return run_twice();
    const bool one = arguments_.what == "--seed";
    const Result result = one ? run_seed() : run_many(arguments_.first, arguments_.bug);
    print(result);
    return result.failure ? 1 : 0;
  }

 private:
  ScheduleResult play(Seed seed, std::FILE* trace) const {
    current_seed = seed;
    return simulation_.play(seed, trace);
  }

  static void add(Result& result, const ScheduleResult& outcome) {
    ++result.schedules;
    result.counts.resize(std::max(result.counts.size(), outcome.counts.size()));
    for (std::size_t i = 0; i < outcome.counts.size(); ++i) result.counts[i] += outcome.counts[i];
  }

  Result run_many(Seed first, std::string_view bug) const {
    Result result;
    std::mutex mutex;  // guards result
    std::atomic<std::uint64_t> next = 0;
    std::atomic<std::uint64_t> stop_at = arguments_.count;
    const auto start = Clock::now();
    const auto work = [&] {
      planted_bug = bug;
      for (std::uint64_t i = next++; i < stop_at; i = next++) {
        ScheduleResult outcome = play(first + i, nullptr);
        if (!outcome.breach && i % 100 == 0 && play(first + i, nullptr).hash != outcome.hash) {
          outcome.breach = "other";
          outcome.text = "two runs of one seed differ";
        }
        const std::lock_guard lock(mutex);
        add(result, outcome);
        if (!outcome.breach) continue;
        stop_at = std::min<std::uint64_t>(stop_at, i);
        if (!result.failure || first + i < result.failure->seed) {
          result.failure = Failure{first + i, outcome};
        }
      }
    };
    std::vector<std::thread> workers;
    for (int i = 0; i < arguments_.threads; ++i) workers.emplace_back(work);
    for (std::thread& worker : workers) worker.join();
    result.seconds = seconds_between(start, Clock::now());
    return result;
  }

  Result run_seed() const {
    Result result;
    std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);  // lines come out even if a check ends this
    const auto start = Clock::now();
    const ScheduleResult outcome = play(arguments_.first, arguments_.trace ? stdout : nullptr);
    result.seconds = seconds_between(start, Clock::now());
    add(result, outcome);
    if (outcome.breach) result.failure = Failure{arguments_.first, outcome};
    return result;
  }

  int run_bugs() const {
    int missed = 0;
    for (const char* const bug : kBugs) {
      const Result result = run_many(1, bug);
      if (!result.failure) {
        ++missed;
        std::printf("%-18s not caught in %llu schedules\n", bug,
                    static_cast<Number>(arguments_.count));
        continue;
      }
      std::printf("%-18s caught by schedule %llu: %s: %s\n", bug,
                  static_cast<Number>(result.failure->seed),
                  result.failure->outcome.breach->c_str(), result.failure->outcome.text.c_str());
    }
    return missed == 0 ? 0 : 1;
  }

  int run_survey() const {
    std::map<std::string, std::pair<std::uint64_t, Seed>> found;  // how often, and where first
    for (Seed seed = arguments_.first; seed < arguments_.first + arguments_.count; ++seed) {
      const ScheduleResult outcome = play(seed, nullptr);
      if (!outcome.breach) continue;
      std::string kind = *outcome.breach + ": " + outcome.text;
      std::replace_if(
          kind.begin(), kind.end(), [](char c) { return c >= '0' && c <= '9'; }, '#');
      auto& [times, where] = found.try_emplace(kind.substr(0, 120), 0, seed).first->second;
      ++times;
    }
    for (const auto& [kind, times] : found) {
      std::printf("%6llu  first in %llu: %s\n", static_cast<Number>(times.first),
                  static_cast<Number>(times.second), kind.c_str());
    }
    return found.empty() ? 0 : 1;
  }

  int run_twice() const {
    const auto text_of = [&] {
      char* text = nullptr;
      std::size_t size = 0;
      std::FILE* out = open_memstream(&text, &size);
      const ScheduleResult outcome = play(arguments_.first, out);
      std::fclose(out);
      std::string all(text, size);
      std::free(text);
      return all + std::to_string(outcome.hash);
    };
    const std::string first = text_of();
    const bool same = first == text_of();
    std::printf("schedule %llu, %zu lines of trace: %s\n", static_cast<Number>(arguments_.first),
                static_cast<std::size_t>(std::count(first.begin(), first.end(), '\n')),
                same ? "both runs are the same" : "the two runs differ");
    return same ? 0 : 1;
  }

  void print(const Result& result) const {
    std::printf("schedules %llu", static_cast<Number>(result.schedules));
    for (std::size_t i = 0; i < result.counts.size(); ++i) {
      std::printf("  %s %llu", simulation_.counted[i].c_str(),
                  static_cast<Number>(result.counts[i]));
    }
    std::printf("  (%.1f s, %.0f schedules/s)\n", result.seconds,
                static_cast<double>(result.schedules) / std::max(result.seconds, 1e-9));
    if (!result.failure) return;
    std::printf("schedule %llu: %s: %s\nreplay it: %s --seed %llu --trace%s\n",
                static_cast<Number>(result.failure->seed), result.failure->outcome.breach->c_str(),
                result.failure->outcome.text.c_str(), simulation_.name.c_str(),
                static_cast<Number>(result.failure->seed),
                arguments_.bug.empty() ? "" : (" --bug " + arguments_.bug).c_str());
  }

  const Simulation& simulation_;
  const Arguments arguments_;
};

int usage(const Simulation& simulation, const std::string& problem) {
  std::string names;
  for (const char* const bug : kBugs) names += std::string(" ") + bug;
  std::fprintf(stderr,
               "%s\n%s --seeds FIRST COUNT | --survey FIRST COUNT | --seed N [--trace] | --twice N "
               "| --bugs COUNT  [--bug NAME] [--threads N]\nbugs:%s\n",
               problem.c_str(), simulation.name.c_str(), names.c_str());
  return 2;
}

std::optional<Arguments> parse(const std::vector<std::string>& words) {
  Arguments arguments;
  std::size_t at = 0;
  const auto number = [&]() -> std::uint64_t {
    return ++at < words.size() ? std::strtoull(words[at].c_str(), nullptr, 10) : 0;
  };
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--seeds" || word == "--survey" || word == "--seed" || word == "--twice") {
      arguments.what = word;
      arguments.first = number();
      if (word == "--seeds" || word == "--survey") arguments.count = number();
    } else if (word == "--bugs") {
      arguments.what = word;
      arguments.count = number();
    } else if (word == "--trace") {
      arguments.trace = true;
    } else if (word == "--threads") {
      arguments.threads = std::max(1, static_cast<int>(number()));
    } else if (word == "--bug" && at + 1 < words.size()) {
      arguments.bug = words[++at];
    } else {
      return {};
    }
  }
  return arguments;
}

}  // namespace

int run_simulation(const Simulation& simulation, const std::vector<std::string>& words) {
  std::signal(SIGABRT, tell_seed);
  std::signal(SIGSEGV, tell_seed);
  const auto arguments = parse(words);
  if (!arguments || arguments->what.empty()) return usage(simulation, "what shall it do?");
  const std::string& bug = arguments->bug;
  const bool known = std::find(std::begin(kBugs), std::end(kBugs), bug) != std::end(kBugs);
  if (!bug.empty() && !known) return usage(simulation, "no such bug");
  planted_bug = bug;
  return Runner(simulation, *arguments).run();
}

}  // namespace cohort::simulation
