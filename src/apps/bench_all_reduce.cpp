#include "apps/bench_all_reduce.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "launch/job.h"
#ifdef COHORT_WITH_MPI
#include "launch/mpi_job.h"
#endif

namespace cohort::apps {
namespace {

struct AllReduceBench {
  std::string engine = "threads";
  int workers = 0;
  std::vector<std::string> sizes = {"1KB", "4KB", "16KB", "64KB", "256KB",
                                    "1MB", "4MB", "16MB", "100MB"};
  int rounds = 15;
  double round_seconds = 0.02;
};

std::size_t bytes_of(const std::string& size) {
  std::size_t used = 0;
  double number = 0;
  try {
    number = std::stod(size, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = size.substr(used);
  const double factor = unit.empty() || unit == "B" ? 1
                        : unit == "KB"              ? 1e3
                        : unit == "MB"              ? 1e6
                                                    : 0;
  if (used == 0 || factor == 0 || number * factor < 4 || number * factor > 4e9) {
    throw ConfigError("--sizes: '" + size + "' is no size from 4 B to 4000 MB; write 4KB or 1.5MB");
  }
  return static_cast<std::size_t>(number * factor) / sizeof(float) * sizeof(float);
}

// Seconds of one operation, of each round.
struct Timing {
  std::vector<double> seconds;

  double least() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

Deadline patience() { return deadline_in(std::chrono::seconds(60)); }

void check_sum(collectives::Collectives& group, std::span<float> values) {
  std::fill(values.begin(), values.end(), static_cast<float>(group.rank() + 1));
  group.all_reduce(values, patience());
  const int of_ranks = group.size() * (group.size() + 1) / 2;
  const auto expected = static_cast<float>(of_ranks);
  if (std::any_of(values.begin(), values.end(), [&](float value) { return value != expected; })) {
    throw RunError("all_reduce gave a wrong sum");
  }
}

template <class Operation>
double time_round(collectives::Collectives& group, int count, Operation&& operation) {
  group.barrier(patience());
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) operation();
  return seconds_between(start, Clock::now()) / count;
}

// As many operations a round as take some time; rank 0 decides.
int operations_per_round(collectives::Collectives& group, std::span<float> values,
                         double round_seconds) {
  const auto operation = [&] { group.all_reduce(values, patience()); };
  const double once = time_round(group, 3, operation);
  int count = static_cast<int>(std::clamp(round_seconds / once, 1.0, 20000.0));
  group.broadcast(std::as_writable_bytes(std::span(&count, 1)), 0, patience());
  return count;
}

nlohmann::json measure(const AllReduceBench& bench, collectives::Collectives& group,
                       std::size_t bytes, [[maybe_unused]] bool with_plain_mpi) {
  std::vector<float> values(bytes / sizeof(float));
  check_sum(group, values);
  std::fill(values.begin(), values.end(), 0.0F);
  const int count = operations_per_round(group, values, bench.round_seconds);
  Timing ours;
  Timing plain;
  for (int round = 0; round < bench.rounds; ++round) {
    ours.seconds.push_back(time_round(group, count, [&] { group.all_reduce(values, patience()); }));
#ifdef COHORT_WITH_MPI
    if (with_plain_mpi) {
      plain.seconds.push_back(
          time_round(group, count, [&] { launch::plain_mpi_all_reduce(values); }));
    }
#endif
  }
  nlohmann::json line = {{"bench", "all-reduce"},
                         {"engine", bench.engine},
                         {"workers", group.size()},
                         {"bytes", bytes},
                         {"us", 1e6 * ours.median()},
                         {"least_us", 1e6 * ours.least()},
                         {"gb_per_s", 1e-9 * static_cast<double>(bytes) / ours.median()}};
  if (!plain.seconds.empty()) {
    line["mpi_us"] = 1e6 * plain.median();
    line["mpi_least_us"] = 1e6 * plain.least();
    line["times_mpi_speed"] = plain.median() / ours.median();
  }
  return line;
}

void run_rank(const AllReduceBench& bench, collectives::Membership& member, bool with_plain_mpi) {
  try {
    for (const std::string& size : bench.sizes) {
      const nlohmann::json line = measure(bench, *member.gradients, bytes_of(size), with_plain_mpi);
      if (member.rank == 0) {
        fmt::print("{}\n", line.dump());
        std::fflush(stdout);
      }
    }
  } catch (const std::exception& error) {
    member.leave(error.what());
    throw;
  }
}

void run_all_reduce_bench(const AllReduceBench& bench) {
  for (const std::string& size : bench.sizes) bytes_of(size);
  launch::JobOptions options;
  options.workers = bench.workers == 0 && bench.engine == "threads" ? 2 : bench.workers;
  launch::check_engine(bench.engine);
  const auto job = launch::engines().make(bench.engine, options);
  std::vector<collectives::Membership> members = job->join();
  const bool with_plain_mpi = bench.engine == "mpi" && job->shape().local_size == 1;

  std::vector<std::exception_ptr> errors(members.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        run_rank(bench, members[i], with_plain_mpi);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

void add_all_reduce_bench(CLI::App& bench_command) {
  CLI::App* command = bench_command.add_subcommand(
      "all-reduce", "Time of one sum over all workers, beside MPI's own where mpirun started it");
  auto bench = std::make_shared<AllReduceBench>();
  command->add_option("--engine", bench->engine, "threads, mpi, ...")->capture_default_str();
  command
      ->add_option("--workers", bench->workers,
                   "ranks in all; default: 2 threads, or one for each process")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--sizes", bench->sizes, "bytes of the vector, e.g. 1KB,100MB")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--rounds", bench->rounds, "the median of so many is reported")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--round-seconds", bench->round_seconds, "operations of a round take so long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([bench] { run_all_reduce_bench(*bench); });
}

}  // namespace cohort::apps
