// Tells what the launcher itself says from what the job's processes say.
//
// Both come through the launcher's error stream. The job's lines go on at once, also unfinished
// ones; the launcher's pages between two lines of dashes, and what ssh reports, are kept back, for
// one sentence can say the same. Used from one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "launch/mpirun.h"

namespace cohort::launch {

class LauncherOutput {
 public:
  // `pass_on` gets what the job wrote, unchanged and in order.
  explicit LauncherOutput(std::function<void(std::string_view)> pass_on);

  void read(std::string_view chunk);
  void finish();  // after the last chunk

  const std::string& kept_back() const { return kept_back_; }

 private:
  void take_line(std::string_view line);  // with its line break
  void give_up_page();

  std::function<void(std::string_view)> pass_on_;
  std::string line_;      // the beginning of a line that may be the launcher's
  bool in_line_ = false;  // the beginning was passed on, so the rest goes the same way
  std::string page_;      // the launcher's, open until its second line of dashes
  int page_lines_ = 0;
  std::string kept_back_;
};

// `kept_back` without the pages that only say that a process of the job failed.
std::string without_noise(std::string_view kept_back);

// Why a job ended that did not end well, and what to do about it; "" when the launcher said
// nothing that is known here.
std::string explain_launch_failure(std::string_view kept_back, const LaunchRequest& request);

}  // namespace cohort::launch
