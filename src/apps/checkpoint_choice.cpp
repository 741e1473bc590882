#include "apps/checkpoint_choice.h"

#include <cstdio>

#include "core/error.h"

namespace cohort::apps {
namespace {

namespace fs = std::filesystem;

bool is_checkpoint(const fs::path& folder) { return fs::exists(folder / "manifest.json"); }

}  // namespace

storage::LoadedCheckpoint choose_checkpoint(const fs::path& where, const std::string& which) {
  if (is_checkpoint(where)) return storage::load_checkpoint(where);
  const storage::CheckpointStore store(run_of(where) / "checkpoints", 1);
  if (which == "best") {
    if (auto best = store.load_best()) return std::move(*best);
  }
  if (which == "best" || which == "latest") {
    const auto warn = [](const std::string& text) {
      std::fprintf(stderr, "warning: %s\n", text.c_str());
    };
    if (auto latest = store.load_latest(warn)) return std::move(*latest);
    throw ConfigError(where.string() + " has no checkpoint yet");
  }
  std::string known;
  for (const storage::StoredCheckpoint& stored : store.list()) {
    if (std::to_string(stored.step) == which) return storage::load_checkpoint(stored.folder);
    known += (known.empty() ? "" : ", ") + std::to_string(stored.step);
  }
  throw ConfigError("--which must be best, latest or one of the steps " + known + "; got '" +
                    which + "'");
}

fs::path run_of(const fs::path& where) {
  fs::path folder = fs::absolute(where).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // a trailing slash
  fs::path run = is_checkpoint(folder) ? folder.parent_path().parent_path() : folder;
  if (!fs::exists(run / "run.json")) {
    throw ConfigError(where.string() + " is neither a run directory nor a checkpoint of one");
  }
  return run;
}

}  // namespace cohort::apps
