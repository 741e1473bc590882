// What CHOCO-SGD's program prints and logs, in its format:
//
//   runtime: {'time': '2020-02-02 20:20:20', 'rank': 0, 'epoch': 0.5, 'local_index': 100,
//             'n_bits_to_transmit': 0.0327, 'loss': 1.7, 'top1': 37.5, 'top5': 87.5}
//             ({'split': 'train'})                                                     (one line)
//   2020-02-02 20:20:20<tab>eval the averaged model on full val data.
//   runtime: {...} ({'split': 'test', 'type': 'averaged_model_on_full_val'})
//   2020-02-02 20:20:20<tab>eval the local model on full val data.
//   runtime: {...} ({'split': 'test', 'type': 'local_model_on_full_val'})           (of each rank)
//   2020-02-02 20:20:20<tab>best performance at local index 200 (best epoch 1.000, current epoch
//             1.000): 52.5.                                                           (one line)
//
// and the table of timings. The same as objects goes to log-1.json, log-2.json, ... of at most a
// thousand records each, the lines with a date to log.txt. Accuracies are percentages;
// n_bits_to_transmit are MiB that a rank sent to one other in a step, measured.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/progress.h"

namespace cohort::dialects {

struct ChocoProgressOptions {
  int ranks = 1;
  bool averages = false;            // models differ: what is tested as "test" is their average
  bool tests_workers = false;       // and each of them is tested too
  std::vector<int> receivers = {};  // of each rank: how many it sends to in a step
  bool track_time = false;          // timings go to the log
  bool display_time = false;        // and the table is printed
  int first_log = 1;                // number of the first log-N.json
  std::string earlier_text = {};    // what log.txt has already
  // Of a run that goes on: what was tested before, so that the best is the best of the whole run.
  std::vector<metrics::EvaluationRecord> earlier_tests = {};
  std::function<double()> now = {};             // seconds of a clock
  std::function<std::string()> wall_time = {};  // "2020-02-02 20:20:20"
  // Writes a file of the run's folder, replacing the one that is there.
  std::function<void(const std::string& name, const std::string& content)> save = {};
};

// Prints to `out`; notes, which the program has not, go to `notes`.
std::unique_ptr<engine::Progress> make_choco_progress(std::FILE* out, std::FILE* notes,
                                                      ChocoProgressOptions options);

}  // namespace cohort::dialects
