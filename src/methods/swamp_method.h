// Swamp: workers compete, a server keeps the best model (ElasticDL's experiment of 2018).
//
// Each worker trains a model of its own. After free_trial_steps batches one batch is only looked
// at: if its loss is lower than the worker's score, the model is offered to the server with that
// loss as its claim; otherwise, with pull_probability, the worker takes the server's model (or with
// crossover_probability the mean of both). Momentum stays with the worker. The server decides in
// its own time what is best (swamp/best_model.h); nobody waits for it.
//
// With the server `validated` a worker's score is what the server found its model to be worth, once
// that is known, since a lucky batch would keep it from ever offering again; and at its end every
// worker offers what it has. In the end the first worker has the best model.
//
// Cost: a model sent for each offer, a model received for each pull that brings one. Without a
// server and alone it is plain local training.
#pragma once

#include <memory>

#include "config/own_settings.h"
#include "methods/server_access.h"
#include "methods/update_method.h"

namespace cohort::methods {

struct SwampSettings {
  std::string server = "validated";
  std::int64_t free_trial_steps = 10;
  double pull_probability = 0.5;
  double crossover_probability = 0;
  std::int64_t validation_size = 1000;
  double hysteresis = 1;
  std::int64_t check_samples = 320;
};
const config::OwnSettings<SwampSettings>& swamp_settings();

std::unique_ptr<UpdateMethod> make_swamp(const MethodOptions& options);
MethodTraits swamp_traits();

}  // namespace cohort::methods
