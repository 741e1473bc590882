// Models dumped in the course of a run, and what they scored: names and places of the files.
//
//   [dumps/]trainer_3/model_params_trainer_3_epoch_0_batch_50_sec_12.safetensors   a worker's
//   [dumps/]ps/model_params_ps_model_version_7_sec_12.safetensors                  the server's
//   the same with .eval for .safetensors      one line: loss_accuracy_seconds, 0.0412_0.987_12.345
//
// The names are those that the Swamp experiment used, directly in its job directories; other runs
// have them under dumps/. A model may be deleted once it is evaluated: the score stays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace cohort::storage {

// Who dumped it, and when.
struct DumpName {
  bool of_server = false;
  Rank worker = 0;           // of a worker's
  std::int64_t epoch = 0;    // likewise, from 0
  std::int64_t batch = 0;    // of the epoch, from 0
  std::int64_t version = 0;  // of a server's, from 1
  std::int64_t second = 0;   // since the run began

  std::string series() const;  // the folder: "trainer_3", "ps"
  std::string stem() const;    // the file without its ending

  friend bool operator==(const DumpName&, const DumpName&) = default;
};

// By series, then by age.
bool operator<(const DumpName& a, const DumpName& b);

// Nothing when the text is no such name.
std::optional<DumpName> parse_dump_stem(std::string_view stem);

struct DumpScore {
  double loss = 0;      // not a number for a model that has diverged
  double accuracy = 0;  // share of the samples, 0 to 1
  double seconds = 0;   // since the run began
  // How many samples were asked; 0: as many as the run itself was evaluated on, or not said.
  std::int64_t samples = 0;

  friend bool operator==(const DumpScore&, const DumpScore&) = default;
};

// loss_accuracy_seconds; with _samples where these are not all.
std::string format_score(const DumpScore& score);
std::optional<DumpScore> parse_score(std::string_view text);

inline constexpr const char* kDumpEnding = ".safetensors";
inline constexpr const char* kScoreEnding = ".eval";
inline constexpr const char* kDumpFolder = "dumps";

struct FoundDump {
  DumpName name;
  std::filesystem::path stem;  // add an ending
  bool has_model = false;
  bool has_score = false;

  std::filesystem::path model() const { return stem.string() + kDumpEnding; }
  std::filesystem::path score() const { return stem.string() + kScoreEnding; }
};

struct FoundDumps {
  std::vector<FoundDump> dumps;                // in the order of names
  std::vector<std::filesystem::path> foreign;  // files among them that are none
};

// What lies in the run directory `run`, which may be in use. Never throws for what is in there.
FoundDumps find_dumps(const std::filesystem::path& run);

}  // namespace cohort::storage
