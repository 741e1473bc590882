// A job whose workers all begin again from a checkpoint.
//
// The servers' model is then newer or older than that, and of several servers not of one moment: a
// snapshot is each server's own affair. So the job goes back to worker 0's checkpoint as a whole.
// A worker that comes with a checkpoint while others are under way takes its place among them.
#include <algorithm>

#include "core/error.h"
#include "core/random.h"
#include "server/numbers.h"
#include "server/server_state.h"

namespace cohort::server {

using Presence = Member::Presence;

namespace {

// For those who were done before the server's restart, to come again; and for those who were given
// up, since they were heard of.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

void ParameterServer::State::hold_restart(membership::ConnectionId connection, Rank worker,
                                          const network::FrameHeader& header,
                                          membership::JoinRequest request) {
  JobSpec given;  // the job would be gone before join() looks at it
  const std::string wrong = objection(worker, request.job, given);
  if (!wrong.empty()) return roster.refuse(connection, wrong);
  restarts[connection] = {.worker = worker,
                          .header = header,
                          .request = std::move(request),
                          .since = roster.now(),
                          .other_job = !differences(*spec, given).empty()};
  examine_restart();
  if (restarts.count(connection) == 0) return;
  log(membership::named(worker) +
      " comes with a checkpoint; waiting to see whether all workers begin again");
}

// Of several servers some have gone back, and this one has not.
void ParameterServer::State::go_back(membership::ConnectionId connection, Rank worker,
                                     const network::FrameHeader& header,
                                     const membership::JoinRequest& request) {
  if (worker != 0 || header.incarnation != 0 || request.lineage != 0) {
    throw PeerError(membership::named(worker) +
                    " asked the job to go back, which is for worker 0 to ask as it begins");
  }
  JobSpec given;
  const std::string wrong = objection(worker, request.job, given);
  if (!wrong.empty()) return roster.refuse(connection, wrong);
  // Else it has, and the answer was lost with the connection.
  const bool was_joined = roster.connections().at(connection).joined;
  roster.let_ask_again(connection);
  if (spec && (was_joined || initialized || initialization.whole)) forget_job();
  join(connection, worker, header, request);
}

// Whether members that have not come with a checkpoint, or not by these connections, are under way,
// may still be, or are not.
ParameterServer::State::UnderWay ParameterServer::State::under_way() const {
  std::vector<Rank> restarting;
  Deadline first = roster.now();
  bool other_job = false;
  for (const auto& [id, restart] : restarts) {
    restarting.push_back(restart.worker);
    first = std::min(first, restart.since);
    other_job = other_job || restart.other_job;
  }
  auto found = UnderWay::kNo;
  for (const Member& member : members->all()) {
    // Of a worker that comes it is another process, and the join decides between them.
    if (member.expected() && member.connection) return UnderWay::kYes;
    if (std::find(restarting.begin(), restarting.end(), member.worker) != restarting.end())
      continue;
    if (member.presence == Presence::kLeft && member.leave == membership::LeaveKind::kDone) {
      // The job goes on to its end without it. If that was before this server started, it may have
      // been the end of all, and it comes again with the others; for a job with other settings
      // surely so.
      if (member.left_here) return UnderWay::kYes;
      if (other_job) continue;
      if (roster.now() - first >= kPatience) return UnderWay::kYes;
      found = UnderWay::kPerhaps;
    }
    const bool may_wake = member.presence == Presence::kEvicted;
    if (member.expected() || (may_wake && roster.now() - member.last_heard < kPatience)) {
      found = UnderWay::kPerhaps;
    }
  }
  return found;
}

// Since this server started: its model is then one that worker 0's checkpoint is behind of.
bool ParameterServer::State::gone_on_without_first() const {
  return first_gone_at && model->version() > *first_gone_at;
}

void ParameterServer::State::examine_restart() {
  if (restarts.empty()) return;
  const UnderWay others = members ? under_way() : UnderWay::kYes;
  if (others == UnderWay::kPerhaps) return;
  if (others == UnderWay::kNo) {
    // A process that is stopped, or dead, takes nobody's job back.
    const bool first_came = std::any_of(restarts.begin(), restarts.end(), [&](const auto& each) {
      const Deadline heard = roster.connections().at(each.first).last_heard;
      return each.second.worker == 0 && roster.now() - heard <= options.evict_after / 2;
    });
    // Without worker 0 there is no saying what of several servers is of one moment.
    if (!first_came && !gone_on_without_first()) return;
    if (first_came) forget_job();
  }
  // Worker 0 first: its settings are the job's. Of a worker that has connected again, the latest.
  std::vector<membership::ConnectionId> held;
  for (const auto& [id, restart] : restarts) held.push_back(id);
  std::sort(held.begin(), held.end(), [&](membership::ConnectionId a, membership::ConnectionId b) {
    return std::pair(restarts.at(a).worker, b) < std::pair(restarts.at(b).worker, a);
  });
  for (const membership::ConnectionId id : held) {
    const auto found = restarts.find(id);
    if (found == restarts.end()) continue;
    const Restart restart = std::move(found->second);
    restarts.erase(found);
    join(id, restart.worker, restart.header, restart.request);
  }
}

// All but the numbers of incarnations, so that none is given twice, and what was counted of faults.
void ParameterServer::State::forget_job() {
  log("the job begins again: it goes back from update " + std::to_string(model->version()) +
      " to worker 0's checkpoint");
  roster.close("the job begins again");
  memory_changes(model->parameters());
  for (const std::span<const float> memory : model->second_copy()) memory_changes(memory);
  incarnations.resize(std::max(incarnations.size(), members->all().size()));
  for (const Member& member : members->all()) {
    incarnations[static_cast<std::size_t>(member.worker)] = member.incarnation;
  }
  lineage = derive_seed(lineage, "restart", {}) | 1U;
  members.reset();
  model.reset();
  spec.reset();
  spec_text.clear();
  initialized = restored = recovering = fell_back = false;
  gone_back = true;
  initialization = {};
  speculation.reset();
  rounds_from.reset();
  first_gone_at.reset();
  loss.reset();
  inferred_lost = 0;
  snapshots.forget();
  skipped = 0;
  counters.updates = counters.pushes = counters.speculative = counters.unaccounted = 0;
  counters.staleness.clear();
}

}  // namespace cohort::server
