// Words of other tools for what a setting or flag is called here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort::config {

// The entry of `known` that means the same as `word`, or "". Both without leading dashes; `_` and
// `-`, capital and small letters are the same: batch_size and bs are known for batch, and
// batch for batch_size.
std::string same_meaning(std::string_view word, const std::vector<std::string>& known);

// For a word whose meaning `known` does not have: the entry that comes nearest and is most likely
// wanted, or "". That is no name for the same: eval-batch for batch-size, where nothing trains.
std::string nearest_meaning(std::string_view word, const std::vector<std::string>& known);

// For a word that means something which this program has not: what to do instead, or "".
std::string advice_instead_of(std::string_view word);

}  // namespace cohort::config
