#include "storage/dump_files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

#include "storage/file.h"

namespace cohort::storage {
namespace {

namespace fs = std::filesystem;

// Takes `text` apart from its front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool word(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  template <class Number>
  bool number(Number& value) {
    const char* end = rest_.data() + rest_.size();
    const auto parsed = std::from_chars(rest_.data(), end, value);
    if (parsed.ec != std::errc{} || value < 0) return false;
    rest_.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest_.data()));
    return true;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

auto key_of(const DumpName& name) {
  // A server that begins anew counts its versions anew.
  const std::int64_t begun = name.of_server ? name.second : 0;
  return std::tuple(name.of_server, name.worker, begun, name.epoch, name.batch, name.version,
                    name.second);
}

std::string rounded(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", value);
  std::string result = text;
  if (!std::isfinite(value)) return result;
  result.erase(result.find_last_not_of('0') + 1);
  if (result.ends_with('.')) result += '0';
  return result;
}

bool is_series(const std::string& folder) {
  Rank worker = 0;
  Scanner scanner(folder);
  return folder == "ps" || (scanner.word("trainer_") && scanner.number(worker) && scanner.at_end());
}

void find_in_series(const fs::path& folder, FoundDumps& found) {
  std::map<std::string, FoundDump> by_stem;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string file = path.filename().string();
    if (file.starts_with(kTemporaryPrefix)) continue;
    const std::string ending = path.extension().string();
    const auto name = parse_dump_stem(path.stem().string());
    std::error_code ignored;
    if (!name || name->series() != folder.filename().string() ||
        (ending != kDumpEnding && ending != kScoreEnding) || !fs::is_regular_file(path, ignored)) {
      found.foreign.push_back(path);
      continue;
    }
    FoundDump& dump = by_stem[path.stem().string()];
    dump.name = *name;
    dump.stem = folder / path.stem();
    (ending == kDumpEnding ? dump.has_model : dump.has_score) = true;
  }
  for (auto& [stem, dump] : by_stem) found.dumps.push_back(std::move(dump));
}

}  // namespace

std::string DumpName::series() const {
  return of_server ? "ps" : "trainer_" + std::to_string(worker);
}

std::string DumpName::stem() const {
  const std::string seconds = "_sec_" + std::to_string(second);
  if (of_server) return "model_params_ps_model_version_" + std::to_string(version) + seconds;
  return "model_params_" + series() + "_epoch_" + std::to_string(epoch) + "_batch_" +
         std::to_string(batch) + seconds;
}

bool operator<(const DumpName& a, const DumpName& b) { return key_of(a) < key_of(b); }

std::optional<DumpName> parse_dump_stem(std::string_view stem) {
  DumpName name;
  Scanner scanner(stem);
  if (!scanner.word("model_params_")) return std::nullopt;
  if (scanner.word("ps_model_version_")) {
    name.of_server = true;
    if (!scanner.number(name.version)) return std::nullopt;
  } else if (!scanner.word("trainer_") || !scanner.number(name.worker) ||
             !scanner.word("_epoch_") || !scanner.number(name.epoch) || !scanner.word("_batch_") ||
             !scanner.number(name.batch)) {
    return std::nullopt;
  }
  if (!scanner.word("_sec_") || !scanner.number(name.second) || !scanner.at_end()) {
    return std::nullopt;
  }
  return name;
}

std::string format_score(const DumpScore& score) {
  return rounded(score.loss) + "_" + rounded(score.accuracy) + "_" + rounded(score.seconds) +
         (score.samples > 0 ? "_" + std::to_string(score.samples) : "");
}

std::optional<DumpScore> parse_score(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  DumpScore score;
  Scanner scanner(text);
  // A loss is at least 0, and so is whatever Scanner takes; "nan" passes, being no number below it.
  if (scanner.number(score.loss) && scanner.word("_") && scanner.number(score.accuracy) &&
      scanner.word("_") && scanner.number(score.seconds) &&
      (scanner.at_end() || (scanner.word("_") && scanner.number(score.samples) &&
                            scanner.at_end() && score.samples > 0)) &&
      score.accuracy <= 1 && std::isfinite(score.seconds)) {
    return score;
  }
  return std::nullopt;
}

FoundDumps find_dumps(const fs::path& run) {
  FoundDumps found;
  for (const fs::path& root : {run / kDumpFolder, run}) {
    std::error_code error;
    for (fs::directory_iterator entry(root, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      if (is_series(entry->path().filename().string()) && entry->is_directory(ignored)) {
        find_in_series(entry->path(), found);
      }
    }
  }
  std::sort(found.dumps.begin(), found.dumps.end(),
            [](const FoundDump& a, const FoundDump& b) { return a.name < b.name; });
  std::sort(found.foreign.begin(), found.foreign.end());
  return found;
}

}  // namespace cohort::storage
