#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/environment.h"
#include "core/error.h"
#include "core/text.h"
#include "data/survey.h"
#include "runs/run_summary.h"

namespace cohort::apps {
namespace {

struct DataFlags {
  std::string directory;
  std::string name;
  bool json = false;
};

data::SearchPath search_path(const DataFlags& flags) {
  return flags.directory.empty() ? data_search_path() : data::SearchPath{flags.directory};
}

nlohmann::json to_json(const data::DataReport& report) {
  return {{"name", report.name},
          {"found", report.found},
          {"folder", report.folder.string()},
          {"train", report.train},
          {"test", report.test},
          {"shape", {report.shape.channels, report.shape.height, report.shape.width}},
          {"classes", report.classes},
          {"problem", report.problem},
          {"notes", report.notes},
          {"class_names", report.class_names},
          {"train_histogram", report.train_histogram},
          {"test_histogram", report.test_histogram},
          {"bad_files", report.bad_files},
          {"bad_file_messages", report.bad_file_messages}};
}

void print_line(const data::DataReport& report) {
  if (!report.found) {
    fmt::print("{:<14} not found\n", report.name);
  } else if (!report.problem.empty()) {
    fmt::print("{:<14} {}: {}\n", report.name, report.folder.string(), report.problem);
  } else if (report.train == 0) {
    fmt::print("{:<14} ready\n", report.name);
  } else {
    fmt::print("{:<14} {} train, {} test, {} classes{}\n", report.name, with_commas(report.train),
               with_commas(report.test), report.classes,
               report.folder.empty() ? "" : ", " + report.folder.string());
  }
  for (const std::string& note : report.notes) fmt::print("{:<14} note: {}\n", "", note);
}

void run_survey(const DataFlags& flags) {
  const data::SearchPath search = search_path(flags);
  nlohmann::json document = nlohmann::json::array();
  for (const data::DataReport& report : data::survey(search)) {
    document.push_back(to_json(report));
    if (!flags.json) print_line(report);
  }
  if (flags.json) {
    fmt::print("{}\n", document.dump(2));
    return;
  }
  fmt::print("\nlooked in:\n");
  for (const auto& folder : search) fmt::print("  {}\n", folder.string());
  fmt::print("Check every file of one of them: cohort data verify NAME\n");
}

int run_verify(const DataFlags& flags) {
  data::DataRequest request;
  request.name = flags.name;
  request.search = search_path(flags);
  const data::DataReport report = data::verify(request);
  const bool sound = report.found && report.problem.empty() && report.bad_files == 0;
  if (flags.json) {
    fmt::print("{}\n", to_json(report).dump(2));
    return sound ? 0 : 1;
  }
  print_line(report);
  if (!report.found) fmt::print("{}\n", report.problem);
  for (const std::string& message : report.bad_file_messages) fmt::print("  {}\n", message);
  if (report.bad_files > 0) fmt::print("{} damaged files\n", report.bad_files);
  for (std::size_t i = 0; i < report.class_names.size(); ++i) {
    fmt::print("  {:>4} {:<24} {:>7} train {:>7} test\n", i, report.class_names[i],
               i < report.train_histogram.size() ? report.train_histogram[i] : 0,
               i < report.test_histogram.size() ? report.test_histogram[i] : 0);
  }
  fmt::print("{}\n", sound ? "sound" : "not usable as it is");
  return sound ? 0 : 1;
}

}  // namespace

void add_data(CLI::App& program, Invocation& invocation) {
  CLI::App* command =
      program.add_subcommand("data", "Which data sets are there; check them: data verify NAME");
  auto flags = std::make_shared<DataFlags>();
  command->add_option("--data-dir", flags->directory, "where to look [the usual places]")
      ->type_name("DIR");
  command->add_flag("--json", flags->json, "as JSON");
  CLI::App* check = command->add_subcommand("verify", "Read and check every file of a data set");
  check->add_option("name", flags->name, "which; see `cohort list data`")->required();
  check->add_option("--data-dir", flags->directory, "where to look [the usual places]")
      ->type_name("DIR");
  check->add_flag("--json", flags->json, "as JSON");
  command->callback([flags, check, &invocation] {
    if (check->parsed()) {
      invocation.exit_status = run_verify(*flags);
    } else {
      run_survey(*flags);
    }
  });
}

}  // namespace cohort::apps
