#include "runs/swamp_host.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/text.h"
#include "launch/job_environment.h"

namespace cohort::runs {
namespace {

// Whose evaluation it is, in records: no worker's.
constexpr Rank kServerRank = -1;

config::RunConfig without_augmentation(config::RunConfig config) {
  config.augment = "none";
  return config;
}

nlohmann::json finite(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

}  // namespace

SwampHost::SwampHost(SwampHostOptions options)
    : options_(std::move(options)),
      start_(Clock::now()),
      server_(complete(std::move(options_.server))) {}

swamp::SwampServerOptions SwampHost::complete(swamp::SwampServerOptions options) {
  options.make_examiner = [this](const swamp::SwampSpec&) { return make_examiner(); };
  options.accepted = [this](std::uint64_t version, double loss, std::span<const float> values) {
    accepted(version, loss, values);
  };
  return options;
}

std::unique_ptr<swamp::Examiner> SwampHost::make_examiner() {
  data_ = engine::open_data(without_augmentation(options_.config), options_.data_search);
  auto examiner = std::make_unique<engine::SwampExaminer>(options_.config, *data_->train);
  examiner_ = examiner.get();
  return examiner;
}

void SwampHost::accepted(std::uint64_t version, double loss, std::span<const float> values) {
  if (options_.metrics != nullptr) {
    metrics::EvaluationRecord record;
    record.time_seconds = options_.earlier_seconds + seconds_between(start_, Clock::now());
    record.rank = kServerRank;
    record.step = static_cast<Step>(version);
    record.split = "validation";
    record.loss = loss;
    options_.metrics->record(record);
  }
  if (options_.dumps == nullptr) return;
  storage::DumpName name;
  name.of_server = true;
  name.version = static_cast<std::int64_t>(version);
  options_.dumps->write(name, examiner_->named(values));
}

SwampThread::SwampThread(SwampHostOptions options, const network::JobId& job)
    : folder_(launch::runtime_folder(), "servers") {
  options.server.listener.address.path = (folder_.path() / "best").string();
  options.server.listener.self = {job, network::Role::kServer, 0};
  host_ = std::make_unique<SwampHost>(std::move(options));
  thread_ = std::thread([this] {
    try {
      report_ = host_->run(stop_);
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

SwampThread::~SwampThread() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  host_.reset();
}

swamp::SwampReport SwampThread::wait() {
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  return report_;
}

nlohmann::json to_json(const swamp::SwampReport& report) {
  const swamp::SwampCounters& counters = report.counters;
  return {{"reason", report.reason},
          {"version", report.version},
          {"score", finite(report.score)},
          {"loss", finite(report.loss)},
          {"offers", counters.offers},
          {"accepted", counters.accepted},
          {"rejected", counters.rejected},
          {"dropped", counters.dropped},
          {"replaced", counters.replaced},
          {"duplicates", counters.duplicates},
          {"refused", counters.refused},
          {"examined", counters.examined},
          {"not_replayed", counters.not_replayed},
          {"persist_failures", counters.persist_failures},
          {"pulls", counters.pulls},
          {"pulls_with_nothing", counters.pulls_with_nothing},
          {"evictions", counters.evictions},
          {"fenced", counters.fenced},
          {"refused_connections", report.refusals},
          {"bytes_sent", report.bytes_sent},
          {"bytes_received", report.bytes_received}};
}

std::string describe(const swamp::SwampReport& report) {
  const swamp::SwampCounters& counters = report.counters;
  const auto number = [](std::uint64_t count) {
    return with_commas(static_cast<std::int64_t>(count));
  };
  std::string text = number(counters.offers) + " models offered; ";
  text += report.version == 0
              ? std::string("none became the best")
              : fmt::format("the best is version {}, loss {:.4f}", report.version, report.loss);
  text += fmt::format("; {} pulls took it, {} found nothing new", number(counters.pulls),
                      number(counters.pulls_with_nothing));
  if (counters.refused > 0) {
    text += fmt::format("; {} were refused: no numbers, or not to be examined",
                        number(counters.refused));
  }
  return text;
}

}  // namespace cohort::runs
