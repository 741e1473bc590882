#include "engine/rank_report.h"

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cohort::engine {
namespace {

using nlohmann::json;

json to_json(const RankReport& report) {
  json arrivals = json::array();
  for (const methods::StepArrivals& step : report.arrivals) {
    arrivals.push_back({step.step, step.data_seconds, step.buckets});
  }
  json traffic = json::array();
  for (const Traffic& part : report.traffic) {
    traffic.push_back({part.sent, part.received, part.wire_sent, part.wire_received});
  }
  const ClassificationSums::Values& sums = report.sums;
  const StepTimes& times = report.times;
  return {
      {"sums", {sums.loss, sums.top1, sums.top5, sums.samples}},
      {"times",
       {times.data_seconds, times.compute_seconds, times.exchange_seconds, times.update_seconds}},
      {"traffic", traffic},
      {"has_links", report.has_links},
      {"arrivals", arrivals}};
}

RankReport from_json(const json& document) {
  RankReport report;
  const json& sums = document.at("sums");
  report.sums = {sums.at(0), sums.at(1), sums.at(2), sums.at(3)};
  const json& times = document.at("times");
  report.times = {times.at(0), times.at(1), times.at(2), times.at(3)};
  for (std::size_t i = 0; i < report.traffic.size(); ++i) {
    const json& part = document.at("traffic").at(i);
    report.traffic[i] = {part.at(0), part.at(1), part.at(2), part.at(3)};
  }
  report.has_links = document.at("has_links");
  for (const json& step : document.at("arrivals")) {
    report.arrivals.push_back({step.at(0), step.at(1), step.at(2).get<std::vector<double>>()});
  }
  return report;
}

}  // namespace

std::vector<RankReport> gather_reports(const RankReport& own, const WorkerGroup& group) {
  if (group.alone()) return {own};
  std::vector<RankReport> reports;
  for (const std::string& text : group.gather(to_json(own).dump())) {
    if (text.empty() && !group.is_present(static_cast<Rank>(reports.size()))) {
      reports.emplace_back();  // of no samples
      continue;
    }
    try {
      reports.push_back(from_json(json::parse(text)));
    } catch (const json::exception& error) {
      throw PeerError("rank " + std::to_string(reports.size()) +
                      " sent a report that cannot be read: " + error.what());
    }
  }
  return reports;
}

}  // namespace cohort::engine
