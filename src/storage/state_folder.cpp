#include "storage/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "storage/file.h"

namespace cohort::storage {
namespace {

constexpr int kKept = 2;

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

std::shared_ptr<const std::vector<float>> StateSnapshot::find(const std::string& name) const {
  for (const auto& [known, values] : vectors) {
    if (known == name) return values;
  }
  return nullptr;
}

StateFolder::StateFolder(const std::filesystem::path& folder) : store_(folder, kKept) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_file_error(error.value(), "making the folder", folder);
  lock_ = lock_folder(folder);
  thread_ = std::thread([this] { run(); });
}

StateFolder::~StateFolder() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ::close(lock_);
}

std::optional<StateSnapshot> StateFolder::load(
    const std::function<void(const std::string&)>& warn) const {
  bool newest = true;
  const auto loaded = store_.load_latest([&](const std::string& text) {
    newest = false;
    warn(text);
  });
  if (!loaded) return std::nullopt;
  StateSnapshot snapshot{.id = static_cast<std::uint64_t>(loaded->step),
                         .newest = newest,
                         .extra = loaded->extra,
                         .vectors = {}};
  for (const TensorView& tensor : loaded->model.tensors()) {
    if (tensor.dtype != DType::kF32) {
      throw FileError(loaded->folder.string() + ": " + tensor.name + " is not float32");
    }
    auto values = std::make_shared<std::vector<float>>(tensor.bytes.size() / sizeof(float));
    if (!values->empty()) std::memcpy(values->data(), tensor.bytes.data(), tensor.bytes.size());
    snapshot.vectors.emplace_back(tensor.name, std::move(values));
  }
  return snapshot;
}

void StateFolder::write(StateSnapshot snapshot, Written written) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = Work{std::move(snapshot), std::move(written)};
  }
  changed_.notify_all();
}

void StateFolder::run() {
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

void StateFolder::save(const StateSnapshot& snapshot) {
  CheckpointContents contents;
  contents.step = static_cast<Step>(snapshot.id);
  for (const auto& [name, values] : snapshot.vectors) {
    contents.model.push_back({name,
                              DType::kF32,
                              {static_cast<std::int64_t>(values->size())},
                              std::as_bytes(std::span(*values))});
  }
  contents.extra = snapshot.extra;
  store_.save(contents, /*best=*/false);
}

}  // namespace cohort::storage
