// The five steps of the Swamp experiment over a folder of jobs: train, evaluate, plot, merge, and
// a grid of jobs that goes through them all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dialects/flag_names.h"
#include "dialects/swamp.h"

namespace cohort::apps {

struct SwampTrainRequest {
  dialects::SwampFlags flags;
  std::string job_root_dir = "jobs";
  std::string loss_file;           // given: training losses are drawn there when training has ended
  bool save_model = false;         // the best model as best_model.safetensors in the job's folder
  dialects::FlagNames flag_names;  // of the command, for what is wrong with the settings
};

// Trains one job, replacing the job of that name (and nothing else). Returns the exit status.
int train_swamp_job(const SwampTrainRequest& request, const std::vector<std::string>& arguments);

struct SwampEvalRequest {
  std::string job_root_dir = "jobs";
  std::string job_name;  // empty: all
  bool delete_job_data = false;
  std::int64_t batch_size = 0;  // 0: what is fastest
  std::int64_t max_batch = 0;   // 0: all of the data
  int concurrency = 0;          // models at a time; 0: one for each core
  std::string data_dir;         // where the data are; empty: as in training
};

int evaluate_swamp_jobs(const SwampEvalRequest& request);

// One picture in each job's folder, named by `loss_file` (swamp_loss_file()).
int plot_swamp_jobs(const std::string& job_root_dir, const std::string& loss_file);

// All jobs' figures in one PDF, two in a row, by the number of trainers and the probability.
int merge_swamp_jobs(const std::string& job_root_dir, const std::string& out);

struct SwampGrid {
  std::vector<std::int64_t> trainers = {1, 2, 4, 8};
  std::vector<double> probabilities = {0, 0.5, 1};
  std::vector<std::string> servers = {};  // empty: the usual one
  std::vector<std::int64_t> seeds = {};   // empty: that of the flags
};

// All jobs of the grid, then their evaluation, plots, metrics.pdf and report.pdf.
int run_swamp_grid(const SwampGrid& grid, const SwampTrainRequest& base,
                   const SwampEvalRequest& evaluation, const std::vector<std::string>& arguments);

}  // namespace cohort::apps
