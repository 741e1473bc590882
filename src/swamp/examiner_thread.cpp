#include "swamp/examiner_thread.h"

#include <utility>

#include "core/error.h"

namespace cohort::swamp {

ExaminerThread::ExaminerThread(Events events)
    : events_(std::move(events)), thread_([this] { serve(); }) {}

ExaminerThread::~ExaminerThread() { finish(); }

void ExaminerThread::prepare() {
  add({.examination = false, .work = [this] { make(); }});
}

void ExaminerThread::examine(std::uint64_t ticket, ModelValues model, std::uint64_t draw) {
  add({.examination = true, .work = [this, ticket, model = std::move(model), draw] {
         examine_now(ticket, model, draw);
       }});
}

void ExaminerThread::run(std::function<void()> work) {
  add({.examination = false, .work = std::move(work)});
}

void ExaminerThread::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ExaminerThread::add(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void ExaminerThread::serve() {
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) break;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      if (stopping_ && task.examination) continue;
    }
    task.work();
  }
  examiner_.reset();  // where it was made: a device may insist
}

void ExaminerThread::make() {
  if (examiner_ || failed_) return;
  try {
    examiner_ = events_.make();
    if (!examiner_) throw RunError("there is no examiner");
  } catch (...) {
    failed_ = true;
    events_.not_made(std::current_exception());
  }
}

void ExaminerThread::examine_now(std::uint64_t ticket, const ModelValues& model,
                                 std::uint64_t draw) {
  make();
  if (failed_) return;
  std::vector<float> losses;
  std::string failure;
  try {
    losses = examiner_->losses(*model, draw);
  } catch (const std::exception& error) {
    failure = error.what();
    if (failure.empty()) failure = "unknown";
  }
  events_.done(ticket, std::move(losses), std::move(failure));
}

}  // namespace cohort::swamp
