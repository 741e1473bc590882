// Which of the offered models is the best, by one of several policies (registry.h).
//
// Pure and deterministic: no clock, no threads, no files. What a policy says depends only on the
// order of the calls and on the losses that the examiner found. Whatever is offered, a model or a
// loss that is not finite never becomes the best, and versions grow by 1 with each acceptance.
//
// The life of a candidate: offer() takes it in; next() gives it out, one at a time, to be examined;
// examined() says what the losses mean, without changing anything yet, so that the owner can make a
// new best model durable before anybody hears of it; commit() makes it count. Each candidate gets
// exactly one verdict, from whichever of these it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/types.h"
#include "swamp/verdict.h"

namespace cohort::swamp {

struct Candidate {
  Rank worker = 0;
  std::uint64_t incarnation = 0;  // of the worker; passed through
  std::uint64_t sequence = 0;     // of the offer; passed through
  double claim = 0;               // what the worker says its loss is, on a batch of its own
  ModelValues model = {};
};

// A verdict, and whose.
struct Decision {
  Rank worker = 0;
  std::uint64_t incarnation = 0;
  OfferVerdict verdict = {};
};

// The best model so far and what it has to be compared by.
struct BestRecord {
  std::uint64_t version = 0;  // 0: there is none
  double claim = std::numeric_limits<double>::infinity();
  double loss = std::numeric_limits<double>::infinity();   // mean over the examined samples
  double score = std::numeric_limits<double>::infinity();  // what pullers are told
  std::uint64_t draws = 0;         // examinations on fresh samples until it was accepted
  ModelValues model = {};          // null: there is none
  std::vector<float> losses = {};  // of single samples, where candidates are compared by them
};

struct Examination {
  Candidate candidate = {};
  std::uint64_t draw = 0;  // Examiner::losses()
};

struct Judgement {
  Decision decision = {};
  std::optional<BestRecord> best = {};  // the new one, of an acceptance
};

// What a pull gives.
struct BestValue {
  ModelValues model = {};
  PulledModel told = {};
};

struct PolicyOptions {
  double hysteresis = 1.0;          // `validated`: standard errors that a model must be better by
  std::size_t queue = 32;           // candidates that wait; more are dropped
  std::size_t replay = 4096;        // `fifo`: entries kept for pulls; more are not appended
  std::size_t replay_models = 256;  // `fifo`: different models among these
};

struct PolicyStanding {
  std::size_t waiting = 0;         // candidates, without the one that is being examined
  std::uint64_t not_replayed = 0;  // `fifo`: entries that its bounded memory had no room for
};

class BestModel {
 public:
  virtual ~BestModel() = default;

  // Verdicts that this decides at once, of the candidate or of those it displaces, are appended.
  virtual void offer(Candidate candidate, std::vector<Decision>& decisions) = 0;

  // The next candidate to examine; nothing when none waits. Those that are rejected without it are
  // appended. Not while another one is being examined.
  virtual std::optional<Examination> next(std::vector<Decision>& decisions) = 0;

  // What the losses say of the candidate that next() gave. Changes nothing.
  virtual Judgement examined(std::span<const float> losses) const = 0;

  // What was said of the candidate that is being examined counts from here on: what examined()
  // gave, or a refusal (candidate.h) when it could not be examined, or not be kept.
  virtual void commit(const Judgement& judgement) = 0;

  // What a worker gets that has `has_version` already (0: none): nothing where the policy says so.
  virtual std::optional<BestValue> pull(std::uint64_t has_version) = 0;

  virtual const BestRecord& best() const = 0;
  virtual PolicyStanding standing() const = 0;
};

}  // namespace cohort::swamp
