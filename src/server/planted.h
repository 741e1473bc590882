// Known protocol bugs that a test build can plant, to see whether the tests notice.
//
// Only where COHORT_PLANTED_BUGS is defined, which no product target does, the question costs
// anything: elsewhere it is the constant false.
#pragma once

namespace cohort {

enum class PlantedBug {
  kNone,
  kNoDedup,           // a push that is in the model already is applied again
  kAckBeforeApply,    // acknowledged when it has arrived, applied later; durable when asked for
  kNoFencing,         // an evicted or replaced incarnation is listened to
  kSequenceRestarts,  // a new process gets the old one's incarnation and number space
  kDeadPinsClock,     // an evicted worker still counts for the smallest clock
  kTornRead,          // an update takes effect under a worker that is being sent older values
  kRestartReuses,     // a job that begins again gives out its incarnations once more
  kRestartsBeneath,   // a job goes back to its checkpoint though others may be about to wake
  kGoesAhead,         // workers with a checkpoint do not wait for worker 0
  kStaleDraft,        // what was computed ahead of time counts, though others have pushed since
};

#ifdef COHORT_PLANTED_BUGS
inline thread_local PlantedBug planted_bug = PlantedBug::kNone;
#define COHORT_PLANTED(bug) (::cohort::planted_bug == ::cohort::PlantedBug::bug)
#else
#define COHORT_PLANTED(bug) false
#endif

}  // namespace cohort
