// The thread on which a server examines models, and tells its owner of those it accepted.
//
// Work is done in the order it was given. Methods may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "swamp/examiner.h"
#include "swamp/verdict.h"

namespace cohort::swamp {

class ExaminerThread {
 public:
  // Called on the thread itself.
  struct Events {
    std::function<std::unique_ptr<Examiner>()> make;          // once, before the first examination
    std::function<void(const std::exception_ptr&)> not_made;  // what it threw; nothing after that
    // Losses, or why there are none.
    std::function<void(std::uint64_t ticket, std::vector<float> losses, std::string failure)> done;
  };

  explicit ExaminerThread(Events events);
  ~ExaminerThread();  // finish()
  ExaminerThread(const ExaminerThread&) = delete;
  ExaminerThread& operator=(const ExaminerThread&) = delete;

  void prepare();  // makes the examiner
  void examine(std::uint64_t ticket, ModelValues model, std::uint64_t draw);
  void run(std::function<void()> work);

  // Leaves examinations that have not begun, does the rest, and ends the thread.
  void finish();

 private:
  struct Task {
    bool examination = false;
    std::function<void()> work;
  };

  void add(Task task);
  void serve();
  void make();
  void examine_now(std::uint64_t ticket, const ModelValues& model, std::uint64_t draw);

  Events events_;
  std::unique_ptr<Examiner> examiner_;  // the thread's alone, as the next one
  bool failed_ = false;                 // there will be none
  std::mutex mutex_;                    // guards the two below
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace cohort::swamp
