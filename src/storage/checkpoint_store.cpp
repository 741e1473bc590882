#include "storage/checkpoint_store.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/failpoint.h"
#include "core/text.h"
#include "storage/folder.h"
#include "storage/sha256.h"

namespace cohort::storage {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFolderPrefix = "step-";
constexpr const char* kLatest = "latest";
constexpr const char* kBest = "best";
constexpr std::uint64_t kMaximumPointerBytes = 128;

std::string folder_name(Step step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%09lld", static_cast<long long>(step));
  return text;
}

std::optional<Step> step_of(std::string_view name) {
  if (!name.starts_with(kFolderPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kFolderPrefix.size());
  Step step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || folder_name(step) != name) return std::nullopt;
  return step;
}

// The check makes a pointer with a changed digit, which may well name another checkpoint, wrong.
std::string pointer_text(Step step) {
  const std::string name = folder_name(step);
  return name + " " + sha256(name).substr(0, 16) + "\n";
}

// Removes what an unfinished save has built, whichever way the save ends.
class Scaffold {
 public:
  explicit Scaffold(fs::path path) : path_(std::move(path)) {}
  ~Scaffold() { remove_tree(path_); }
  Scaffold(const Scaffold&) = delete;
  Scaffold& operator=(const Scaffold&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void create_folder(const fs::path& folder) {
  COHORT_FAILPOINT("checkpoint.create_folder");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_file_error(error.value(), "creating the folder", folder);
}

LoadedCheckpoint load_stored(const StoredCheckpoint& stored) {
  LoadedCheckpoint loaded = load_checkpoint(stored.folder);
  if (loaded.step != stored.step) {
    throw FileError(stored.folder.string() + " holds a checkpoint of step " +
                    std::to_string(loaded.step) + ", expected one of step " +
                    std::to_string(stored.step));
  }
  return loaded;
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, int keep)
    : folder_(std::move(folder)), keep_(keep) {
  if (keep < 1) {
    throw ConfigError("the number of checkpoints to keep is " + std::to_string(keep) +
                      "; it must be 1 or more");
  }
}

fs::path CheckpointStore::path_of(Step step) const { return folder_ / folder_name(step); }

void CheckpointStore::save(const CheckpointContents& contents, bool best) {
  try {
    create_folder(folder_);
    restore_set_aside(folder_);
    remove_leftovers(folder_);
    place(contents);
    // `best` first: killed in between, the run resumes from before this step and judges it again;
    // the other way round it would resume after a best that nobody recorded.
    if (best) write_pointer(kBest, contents.step);
    write_pointer(kLatest, contents.step);
  } catch (const FileError& error) {
    throw FileError(std::string(error.what()) + "; the checkpoint of step " +
                    std::to_string(contents.step) + " failed, earlier ones are kept");
  }
  remove_old(contents.step);
}

void CheckpointStore::place(const CheckpointContents& contents) const {
  const Scaffold scaffold(folder_ / (std::string(kTemporaryPrefix) + folder_name(contents.step)));
  create_folder(scaffold.path());
  write_checkpoint(scaffold.path(), contents);
  replace_folder(scaffold.path(), path_of(contents.step));
}

void CheckpointStore::remove_old(Step saved) const {
  try {
    // When the pointer is damaged it throws: which one is the best cannot be told then, so none is
    // removed.
    const std::optional<Step> best = read_pointer(kBest);
    int counted = 0;
    for (const StoredCheckpoint& stored : list()) {
      if (stored.step > saved || ++counted <= keep_ || stored.step == best) continue;
      discard_folder(stored.folder);
    }
  } catch (const FileError&) {  // the save itself has succeeded; the next one tries again
  }
}

std::vector<StoredCheckpoint> CheckpointStore::list() const {
  std::map<Step, fs::path, std::greater<>> found;
  std::error_code error;
  fs::directory_iterator entry(folder_, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (const auto step = step_of(name)) {
      found[*step] = entry->path();
    } else if (name.starts_with(kSetAsidePrefix)) {
      const auto aside = step_of(std::string_view(name).substr(kSetAsidePrefix.size()));
      if (aside) found.emplace(*aside, entry->path());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_file_error(error.value(), "listing", folder_);
  }
  std::vector<StoredCheckpoint> all;
  for (const auto& [step, path] : found) all.push_back({step, path});
  return all;
}

std::optional<Step> CheckpointStore::read_pointer(const char* name) const {
  const fs::path path = folder_ / name;
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) return std::nullopt;
  const std::string text = read_text_file(path, kMaximumPointerBytes);
  const std::optional<Step> step = step_of(text.substr(0, text.find(' ')));
  if (!step || text != pointer_text(*step)) {
    throw FileError(path.string() + " is damaged: expected the name of a checkpoint folder");
  }
  return step;
}

void CheckpointStore::write_pointer(const char* name, Step step) const {
  COHORT_FAILPOINT("checkpoint.point");
  write_file_atomically(folder_ / name, pointer_text(step));
}

std::vector<StoredCheckpoint> CheckpointStore::in_loading_order(const Warn& warn) const {
  std::vector<StoredCheckpoint> all = list();
  std::optional<Step> latest;
  try {
    latest = read_pointer(kLatest);
  } catch (const FileError& error) {
    warn(std::string(error.what()) + "; taking the highest step");
  }
  if (latest) {
    std::stable_partition(all.begin(), all.end(),
                          [&](const StoredCheckpoint& each) { return each.step <= *latest; });
    if (!all.empty() && all.front().step != *latest) {
      warn((folder_ / kLatest).string() + " names " + folder_name(*latest) +
           ", which is not there; taking the next one");
    }
  }
  return all;
}

std::optional<LoadedCheckpoint> CheckpointStore::load_latest(const Warn& warn) const {
  const std::vector<StoredCheckpoint> candidates = in_loading_order(warn);
  std::vector<std::string> reasons;
  for (const StoredCheckpoint& candidate : candidates) {
    try {
      return load_stored(candidate);
    } catch (const FileError& error) {
      reasons.push_back("checkpoint of step " + std::to_string(candidate.step) +
                        " cannot be used: " + error.what());
      warn(reasons.back());
    }
  }
  if (candidates.empty()) return std::nullopt;
  throw FileError("no usable checkpoint in " + folder_.string() + "\n" + join(reasons, "\n"));
}

std::optional<LoadedCheckpoint> CheckpointStore::load_best() const {
  const std::optional<Step> best = read_pointer(kBest);
  if (!best) return std::nullopt;
  for (const StoredCheckpoint& stored : list()) {
    if (stored.step == *best) return load_stored(stored);
  }
  throw FileError((folder_ / kBest).string() + " names " + folder_name(*best) +
                  ", which is not there");
}

}  // namespace cohort::storage
