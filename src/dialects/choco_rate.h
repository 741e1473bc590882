// The learning rate of CHOCO-SGD's flags in our terms; part of choco.h.
#pragma once

#include "config/run_config.h"
#include "dialects/choco.h"

namespace cohort::dialects {

// Sets what decides the learning rate. `config` has its batch, workers, method and epochs already.
void set_choco_rate(ChocoFlags& flags, ChocoRevision revision, config::RunConfig& config);

}  // namespace cohort::dialects
