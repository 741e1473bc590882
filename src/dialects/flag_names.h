// What a dialect calls our settings, for messages that are written in our terms.
#pragma once

#include <map>
#include <string>

namespace cohort {

// From the name of a setting or flag of `cohort train`, without dashes, to what a user of the
// dialect has to change: "batch" to "--batch_size".
using FlagNames = std::map<std::string, std::string>;

// `text` with each "--batch" replaced by the dialect's name of it; settings that the dialect has no
// name for lose their dashes, since no such flag is there. Nothing changes when `names` is empty.
std::string in_words_of(const FlagNames& names, const std::string& text);

}  // namespace cohort
