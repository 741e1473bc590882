// Dumps models while training goes on.
//
// A thread of its own writes them, each under a temporary name first: a process that is killed
// leaves no half a model (dumps survive that, not a power failure: they are too many to be synced).
// When the disk cannot keep up, write() waits for it, or leaves models out and counts them. What
// the disk refuses is counted, with a note for the first.
//
// Of each series (a worker's models, the server's) at most `keep` + 1 stay on disk: when there
// would be more, every second one goes and from then on only every second one stays, so that those
// that are left are spread over the whole run; the latest stays always.
//
// write() may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "storage/dump_files.h"
#include "storage/safetensors.h"

namespace cohort::storage {

// A model as it is to be written, and whoever owns the memory it shows.
struct DumpContent {
  std::vector<TensorView> tensors;
  std::shared_ptr<const void> memory;
};

struct DumpWriterOptions {
  std::filesystem::path root;                         // in which the series' folders are made
  std::int64_t keep = 0;                              // 0: all
  bool drop_when_slow = false;                        // leave models out rather than wait
  double earlier_seconds = 0;                         // of the run, in earlier sittings
  std::function<void(const std::string&)> note = {};  // a line for people; any thread
};

struct DumpCounts {
  std::int64_t written = 0;
  std::int64_t left_out = 0;  // because the disk was too slow, when that is allowed
  std::int64_t failed = 0;
};

class DumpWriter {
 public:
  // The run's time is counted from here. Dumps that are there already count for their series.
  explicit DumpWriter(DumpWriterOptions options);
  ~DumpWriter();  // as finish()
  DumpWriter(const DumpWriter&) = delete;
  DumpWriter& operator=(const DumpWriter&) = delete;

  double seconds() const;  // since the run began

  // `name.second` is filled in. Waits while eight models are waiting for the disk, unless they may
  // be left out.
  void write(DumpName name, DumpContent content);

  // Waits until all is written; nothing may be written afterwards.
  DumpCounts finish();

 private:
  struct Work {
    DumpName name;
    double seconds;
    DumpContent content;
  };
  // What is on disk of a series, oldest first.
  struct Series {
    std::int64_t taken = 0;   // so far
    std::int64_t stride = 1;  // every so many stay
    std::vector<std::pair<std::int64_t, std::filesystem::path>> files;
  };

  void run();
  void save(const Work& work);
  Series& series_of(const DumpName& name);
  void thin_out(Series& series);

  DumpWriterOptions options_;
  Clock::time_point start_;
  std::map<std::string, Series> series_;  // the writer thread's
  std::mutex mutex_;                      // guards the rest
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  DumpCounts counts_;
  bool stopping_ = false;
  bool said_slow_ = false;
  std::thread thread_;
};

}  // namespace cohort::storage
