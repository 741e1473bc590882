// What the models dumped in the course of a run scored on the test set, by who dumped them
// (storage/dump_files.h has the files). The run may still be under way, and so may `cohort eval`.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "storage/dump_files.h"

namespace cohort::report {

struct ScoredDump {
  storage::DumpName name;
  storage::DumpScore score;
};

struct DumpScores {
  std::map<Rank, std::vector<ScoredDump>> workers;  // in the order of time; no empty ones
  std::vector<ScoredDump> server;                   // likewise
  std::size_t unscored = 0;                         // models that nobody has evaluated yet
  std::int64_t fewest_samples = 0;  // of a score that is not on all samples; 0: all scores are
  std::vector<std::string> notes;   // for people: what was skipped

  bool empty() const { return workers.empty() && server.empty(); }

  // When the last of them was dumped; 0 when there is none.
  double last_seconds() const;
};

// All scores in the run directory `run`. Foreign, damaged and empty files are named and counted in
// the notes. Never throws for what is in the folder.
DumpScores read_dump_scores(const std::filesystem::path& run);

}  // namespace cohort::report
