// What the numbers of several runs say, in sentences. Pure: equal runs give equal sentences.
#pragma once

#include <string>
#include <vector>

#include "report/contenders.h"

namespace cohort::report {

// In the order of a reader's questions: what it rests on, which run is best and whether that means
// anything, how the settings that differ bear on it, what went wrong in which run, which is
// fastest. What no run shows is not mentioned.
//
// Runs that differ only in their seeds count as one with the mean of their accuracies. Two
// accuracies differ significantly when they are more than twice the standard error of their
// difference apart: the root of the sum of both squared errors, each the binomial one of the test
// set and, of several seeds, that of their mean.
std::vector<std::string> conclusions(const Evidence& evidence);

}  // namespace cohort::report
