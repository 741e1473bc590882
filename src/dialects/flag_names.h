// What a dialect calls our settings, for messages that are written in our terms.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cohort::dialects {

// From the name of a setting or flag of `cohort train`, without dashes, to what a user of the
// dialect has to change: "batch" to "--batch_size". A name may be followed by a value, where that
// has another name as well: "method choco" to "--optimizer parallel_choco".
using FlagNames = std::map<std::string, std::string>;

// `text` with each "--batch" replaced by the dialect's name of it; settings that the dialect has no
// name for lose their dashes, since no such flag is there. Nothing changes when `names` is empty.
std::string in_words_of(const FlagNames& names, const std::string& text);

// Of a dialect whose flags, given here without dashes, are our settings under names by which other
// tools call them too (config/other_words.h).
FlagNames flag_names_among(const std::vector<std::string>& flags);

}  // namespace cohort::dialects
