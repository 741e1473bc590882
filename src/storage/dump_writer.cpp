#include "storage/dump_writer.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "storage/file.h"
#include "storage/folder.h"

namespace cohort::storage {
namespace {

namespace fs = std::filesystem;

// Models in memory for want of a disk that keeps up.
constexpr std::size_t kMaxWaiting = 8;
// A wait longer than this is worth a word.
constexpr std::chrono::seconds kUsualDelay{10};

}  // namespace

DumpWriter::DumpWriter(DumpWriterOptions options)
    : options_(std::move(options)), start_(Clock::now()), thread_([this] { run(); }) {}

DumpWriter::~DumpWriter() {
  if (thread_.joinable()) finish();
}

double DumpWriter::seconds() const {
  return options_.earlier_seconds + seconds_between(start_, Clock::now());
}

void DumpWriter::write(DumpName name, DumpContent content) {
  const double now = seconds();
  name.second = static_cast<std::int64_t>(now);
  {
    std::unique_lock lock(mutex_);
    COHORT_CHECK(!stopping_, "a dump after the end");
    const auto has_room = [&] { return waiting_.size() < kMaxWaiting; };
    if (options_.drop_when_slow && !has_room()) {
      ++counts_.left_out;
      return;
    }
    while (!changed_.wait_for(lock, kUsualDelay, has_room)) {
      if (!std::exchange(said_slow_, true) && options_.note) {
        options_.note("note: training waits for the disk to take the dumped models");
      }
    }
    waiting_.push_back({name, now, std::move(content)});
  }
  changed_.notify_all();
}

DumpCounts DumpWriter::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  return counts_;
}

void DumpWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    changed_.notify_all();
    lock.unlock();
    std::string failure;
    try {
      save(work);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    lock.lock();
    ++(failure.empty() ? counts_.written : counts_.failed);
    if (!failure.empty() && counts_.failed == 1 && options_.note) {
      options_.note("warning: a model could not be dumped, training goes on: " + failure);
    }
  }
}

DumpWriter::Series& DumpWriter::series_of(const DumpName& name) {
  const auto [found, is_new] = series_.try_emplace(name.series());
  Series& series = found->second;
  if (!is_new) return series;
  fs::create_directories(options_.root / name.series());
  for (const FoundDump& dump : find_dumps(options_.root).dumps) {
    if (!dump.has_model || dump.name.series() != name.series()) continue;
    series.files.emplace_back(series.taken++, dump.model());
  }
  return series;
}

void DumpWriter::save(const Work& work) {
  Series& series = series_of(work.name);
  const fs::path path = options_.root / work.name.series() / (work.name.stem() + kDumpEnding);
  AtomicFile file(path);
  write_safetensors(file.writer(), work.content.tensors,
                    {{"format", "pt"}, {"seconds", std::to_string(work.seconds)}});
  file.commit(Durability::kProcess);
  // One that was there only because it was the latest.
  if (!series.files.empty() && series.files.back().first % series.stride != 0) {
    remove_tree(series.files.back().second);
    series.files.pop_back();
  }
  series.files.emplace_back(series.taken++, path);
  if (options_.keep > 0) thin_out(series);
}

void DumpWriter::thin_out(Series& series) {
  const auto on_grid = [&](const auto& file) { return file.first % series.stride == 0; };
  while (std::count_if(series.files.begin(), series.files.end(), on_grid) > options_.keep) {
    series.stride *= 2;
    const auto& latest = series.files.back();
    std::vector<std::pair<std::int64_t, fs::path>> left;
    for (const auto& file : series.files) {
      if (on_grid(file) || file == latest) {
        left.push_back(file);
      } else {
        remove_tree(file.second);
      }
    }
    series.files = std::move(left);
  }
}

}  // namespace cohort::storage
