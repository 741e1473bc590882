#include "serving/snapshot_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/failpoint.h"
#include "storage/file.h"

namespace cohort {
namespace {

constexpr int kKept = 2;
constexpr const char* kParameters = "parameters";

std::string slot_name(std::size_t slot) { return "slot" + std::to_string(slot); }

TensorView view(const std::string& name, std::span<const float> values) {
  return {name, DType::kF32, {static_cast<std::int64_t>(values.size())}, std::as_bytes(values)};
}

std::vector<float> values_of(const TensorView& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

int lock_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  const int descriptor = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) throw_file_error(errno, "opening", path);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  ::close(descriptor);
  throw ConfigError(folder.string() +
                    " is in use by another server: give every server a --state-dir of its own");
}

}  // namespace

SnapshotStore::SnapshotStore(const std::filesystem::path& folder) : store_(folder, kKept) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_file_error(error.value(), "making the folder", folder);
  lock_ = lock_folder(folder);
  thread_ = std::thread([this] { run(); });
}

SnapshotStore::~SnapshotStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ::close(lock_);
}

std::optional<ServerSnapshot> SnapshotStore::load(
    const std::function<void(const std::string&)>& warn) const {
  const auto loaded = store_.load_latest(warn);
  if (!loaded) return std::nullopt;
  const auto bad = [&](const std::string& what) {
    throw FileError(loaded->folder.string() + ": " + what + ": not a parameter server's snapshot");
  };
  ServerSnapshot snapshot;
  snapshot.id = static_cast<std::uint64_t>(loaded->step);
  const auto state = loaded->extra.find("server");
  if (state == loaded->extra.end() || !state->is_string()) bad("its manifest lacks the state");
  snapshot.state = state->get<std::string>();
  const TensorView* parameters = loaded->model.find(kParameters);
  if (parameters == nullptr || parameters->dtype != DType::kF32) bad("it has no parameters");
  snapshot.parameters = values_of(*parameters);
  for (std::size_t slot = 0;; ++slot) {
    const TensorView* values = loaded->state.find(slot_name(slot));
    if (values == nullptr) break;
    if (values->dtype != DType::kF32) bad("a slot is not float32");
    snapshot.slots.push_back(values_of(*values));
  }
  return snapshot;
}

void SnapshotStore::write(ServerSnapshot snapshot, Written written) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = Work{std::move(snapshot), std::move(written)};
  }
  changed_.notify_all();
}

void SnapshotStore::run() {
  while (true) {
    std::optional<Work> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || waiting_; });
      if (!waiting_) return;
      work = std::exchange(waiting_, std::nullopt);
    }
    std::string failure;
    try {
      save(work->snapshot);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    work->written(work->snapshot.id, failure);
  }
}

void SnapshotStore::save(const ServerSnapshot& snapshot) {
  COHORT_FAILPOINT("server.snapshot");
  CheckpointContents contents;
  contents.step = static_cast<Step>(snapshot.id);
  contents.model.push_back(view(kParameters, snapshot.parameters));
  for (std::size_t slot = 0; slot < snapshot.slots.size(); ++slot) {
    contents.state.push_back(view(slot_name(slot), snapshot.slots[slot]));
  }
  contents.extra["server"] = snapshot.state;
  store_.save(contents, /*best=*/false);
}

}  // namespace cohort
