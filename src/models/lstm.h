// The recurrent language model.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// Words - embedding - rnn_layers LSTM layers of rnn_hidden units - a logit for every word, with
// dropout (0.4 unless set) before, between and after the layers. With tied weights the embedding is
// the output's weight too (Press and Wolf 2016): 28,949,319 parameters at 28,869 words. Names are
// those of PyTorch's word_language_model; the initial weights are uniform, of the embedding and
// output within 0.1, of the layers within 1 / sqrt(units).
std::unique_ptr<Model> make_lstm(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
