// server_simulation: seeded schedules of a parameter server, its workers, and what goes wrong.
//
//   --seeds FIRST COUNT   so many schedules; exit status 1 at the first that breaks a promise
//   --seed N [--trace]    one of them; with what happened, an event a line
//   --twice N             one, two times: the same in every detail?
//   --bug NAME            with one known mistake in the server
//   --survey FIRST COUNT  likewise as --seeds, but goes on: how many break which promise
//   --bugs COUNT          each of the known mistakes must show within COUNT schedules
//   --threads N           so many at a time (2)
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "planted_bugs.h"
#include "simulation/world.h"

namespace cohort::server::simulation {
namespace {

struct Totals {
  std::uint64_t schedules = 0;
  Outcome sum;
  void add(const Outcome& one) {
    ++schedules;
    sum.events += one.events;
    sum.applied += one.applied;
    sum.crashes += one.crashes;
    sum.server_crashes += one.server_crashes;
    sum.pauses += one.pauses;
    sum.restarts += one.restarts;
    sum.gone_back += one.gone_back;
    sum.breaks += one.breaks;
    sum.evictions += one.evictions;
    sum.excused += one.excused;
    sum.counted += one.counted;
  }
  void add(const Totals& other) {
    schedules += other.schedules - 1;
    add(other.sum);
  }
};

struct Failure {
  Seed seed = 0;
  Outcome outcome;
};

struct Result {
  Totals totals;
  std::optional<Failure> failure;  // the smallest seed that fails
  double seconds = 0;
};

// A check inside the machines ends the program: then at least the seed has to be known.
thread_local Seed current_seed = 0;
void tell_seed(int) {
  char text[64];
  const int size = std::snprintf(text, sizeof text, "aborted in schedule %llu\n",
                                 static_cast<unsigned long long>(current_seed));
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(size)) < 0) std::_Exit(2);
  std::_Exit(2);
}

Outcome run_one(Seed seed, std::FILE* trace) {
  current_seed = seed;
  return World(seed, trace).run();
}

Result run_many(Seed first, std::uint64_t count, int threads, std::string_view bug) {
  Result result;
  std::mutex mutex;  // guards result
  std::atomic<std::uint64_t> next = 0;
  std::atomic<std::uint64_t> stop_at = count;
  const auto start = Clock::now();
  const auto work = [&] {
    planted_bug = bug;
    Totals totals;
    for (std::uint64_t i = next++; i < stop_at; i = next++) {
      Outcome outcome = run_one(first + i, nullptr);
      if (!outcome.breach && i % 100 == 0 && run_one(first + i, nullptr).hash != outcome.hash) {
        outcome.breach = Breach::kOther;
        outcome.text = "two runs of one seed differ";
      }
      totals.add(outcome);
      if (!outcome.breach) continue;
      const std::lock_guard lock(mutex);
      stop_at = std::min<std::uint64_t>(stop_at, i);
      if (!result.failure || first + i < result.failure->seed) {
        result.failure = Failure{first + i, outcome};
      }
    }
    const std::lock_guard lock(mutex);
    result.totals.add(totals);
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  result.seconds = seconds_between(start, Clock::now());
  return result;
}

void print_summary(const Result& result) {
  const auto count = [&](Breach breach) {
    return result.failure && result.failure->outcome.breach == breach ? 1 : 0;
  };
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  const Totals& t = result.totals;
  std::printf(
      "schedules %llu  events %llu  pushes %llu  worker crashes %llu  server crashes %llu  "
      "restarts %llu (%llu back to a checkpoint)  pauses %llu  breaks %llu  evictions %llu  lost "
      "with both holders %llu, counted %llu\n"
      "accepted-but-lost %d  applied-twice %d  gap-violations %d  stuck %d  other %d  "
      "(%.1f s, %.0f schedules/s)\n",
      number(t.schedules), number(t.sum.events), number(t.sum.applied), number(t.sum.crashes),
      number(t.sum.server_crashes), number(t.sum.restarts), number(t.sum.gone_back),
      number(t.sum.pauses), number(t.sum.breaks), number(t.sum.evictions), number(t.sum.excused),
      number(t.sum.counted), count(Breach::kLost), count(Breach::kTwice), count(Breach::kGap),
      count(Breach::kStuck),
      count(Breach::kFence) + count(Breach::kDiverged) + count(Breach::kTorn) +
          count(Breach::kOther),
      result.seconds, static_cast<double>(t.schedules) / std::max(result.seconds, 1e-9));
}

void print_failure(const Failure& failure, const std::string& bug) {
  std::printf("schedule %llu: %s: %s\nreplay it: server_simulation --seed %llu --trace%s\n",
              static_cast<unsigned long long>(failure.seed), to_text(*failure.outcome.breach),
              failure.outcome.text.c_str(), static_cast<unsigned long long>(failure.seed),
              bug.empty() ? "" : (" --bug " + bug).c_str());
}

int run_bugs(std::uint64_t count, int threads) {
  int missed = 0;
  for (const char* const bug : kBugs) {
    const Result result = run_many(1, count, threads, bug);
    if (!result.failure) {
      ++missed;
      std::printf("%-18s not caught in %llu schedules\n", bug,
                  static_cast<unsigned long long>(count));
      continue;
    }
    std::printf("%-18s caught by schedule %llu: %s: %s\n", bug,
                static_cast<unsigned long long>(result.failure->seed),
                to_text(*result.failure->outcome.breach), result.failure->outcome.text.c_str());
  }
  return missed == 0 ? 0 : 1;
}

int run_survey(Seed first, std::uint64_t count) {
  std::map<std::string, std::pair<std::uint64_t, Seed>> found;  // how often, and where first
  for (Seed seed = first; seed < first + count; ++seed) {
    const Outcome outcome = run_one(seed, nullptr);
    if (!outcome.breach) continue;
    std::string kind = std::string(to_text(*outcome.breach)) + ": " + outcome.text;
    std::replace_if(
        kind.begin(), kind.end(), [](char c) { return c >= '0' && c <= '9'; }, '#');
    auto& [times, where] = found.try_emplace(kind.substr(0, 120), 0, seed).first->second;
    ++times;
  }
  for (const auto& [kind, times] : found) {
    std::printf("%6llu  first in %llu: %s\n", static_cast<unsigned long long>(times.first),
                static_cast<unsigned long long>(times.second), kind.c_str());
  }
  return found.empty() ? 0 : 1;
}

int run_twice(Seed seed) {
  const auto text_of = [&] {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* out = open_memstream(&text, &size);
    const Outcome outcome = run_one(seed, out);
    std::fclose(out);
    std::string all(text, size);
    std::free(text);
    return all + std::to_string(outcome.hash);
  };
  const std::string first = text_of();
  const bool same = first == text_of();
  std::printf("schedule %llu, %zu lines of trace: %s\n", static_cast<unsigned long long>(seed),
              static_cast<std::size_t>(std::count(first.begin(), first.end(), '\n')),
              same ? "both runs are the same" : "the two runs differ");
  return same ? 0 : 1;
}

int run_seed(Seed seed, bool trace, const std::string& bug) {
  Result result;
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);  // lines come out even if a check ends this
  const auto start = Clock::now();
  const Outcome outcome = run_one(seed, trace ? stdout : nullptr);
  result.seconds = seconds_between(start, Clock::now());
  result.totals.add(outcome);
  if (outcome.breach) result.failure = Failure{seed, outcome};
  print_summary(result);
  if (outcome.breach) print_failure(*result.failure, bug);
  return outcome.breach ? 1 : 0;
}

int usage(const std::string& problem) {
  std::string names;
  for (const char* const bug : kBugs) names += std::string(" ") + bug;
  std::fprintf(stderr,
               "%s\nserver_simulation --seeds FIRST COUNT | --seed N [--trace] | --twice N | "
               "--bugs COUNT  [--bug NAME] [--threads N]\nbugs:%s\n",
               problem.c_str(), names.c_str());
  return 2;
}

struct Arguments {
  std::string what;
  Seed first = 0;
  std::uint64_t count = 0;
  bool trace = false;
  int threads = 2;
  std::string bug;
};

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

int run(const std::vector<std::string>& words) {
  const auto arguments = parse(words);
  if (!arguments || arguments->what.empty()) return usage("what shall it do?");
  const std::string& bug = arguments->bug;
  const bool known = std::find(std::begin(kBugs), std::end(kBugs), bug) != std::end(kBugs);
  if (!bug.empty() && !known) return usage("no such bug");
  planted_bug = bug;
  if (arguments->what == "--bugs") return run_bugs(arguments->count, arguments->threads);
  if (arguments->what == "--survey") return run_survey(arguments->first, arguments->count);
  if (arguments->what == "--twice") return run_twice(arguments->first);
  if (arguments->what == "--seed") return run_seed(arguments->first, arguments->trace, bug);
  const Result result = run_many(arguments->first, arguments->count, arguments->threads, bug);
  print_summary(result);
  if (!result.failure) return 0;
  print_failure(*result.failure, bug);
  return 1;
}

}  // namespace
}  // namespace cohort::server::simulation

int main(int argc, char** argv) {
  std::signal(SIGABRT, cohort::server::simulation::tell_seed);
  std::signal(SIGSEGV, cohort::server::simulation::tell_seed);
  return cohort::server::simulation::run({argv + 1, argv + argc});
}
