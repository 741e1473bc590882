// What one rank has of its group: how an engine (threads, MPI, NCCL) reaches the methods.
#pragma once

#include <memory>
#include <string>

#include "collectives/collectives.h"
#include "core/activity.h"
#include "core/types.h"
#include "transport/metered.h"

namespace cohort::kernels {
class MessageBoard;  // one_gpu.h
}

namespace cohort::collectives {

class ElasticCollectives;  // elastic.h

struct Membership {
  Rank rank = 0;
  int size = 1;
  int host_rank = 0;  // among the ranks of this host
  int host_size = 1;

  // Messages between any two ranks, where JobOptions::messages asked for them; null otherwise.
  // Knows what it carried: messages->traffic().
  std::unique_ptr<transport::MeteredTransport> messages = nullptr;

  // Two channels that do not hold each other up: one for the thread that trains, one for the thread
  // that exchanges gradients meanwhile.
  std::unique_ptr<Collectives> control = nullptr;
  std::unique_ptr<Collectives> gradients = nullptr;
  bool gradients_on_device = false;  // the second sums in the GPU's memory

  // Where all ranks are on one GPU, what their messages point to; null elsewhere.
  std::shared_ptr<kernels::MessageBoard> board = nullptr;

  // Connections of this process to others, counted: of its first rank; null for the others, and
  // where there are none.
  std::shared_ptr<const TrafficMeter> links = nullptr;

  // Where the loss of a rank does not end the others: the same object as `control`; null elsewhere.
  ElasticCollectives* elastic = nullptr;

  // Where this rank says what it is doing; the others' messages quote it. Never null.
  std::shared_ptr<Activity> activity = std::make_shared<Activity>();

  // Payload bytes that messages carried between this rank and others so far; none where there are
  // no messages. May be called from any thread.
  Traffic message_traffic() const {
    if (!messages) return {};
    const transport::TransportTraffic all = messages->traffic();
    return {all.bytes_sent, all.bytes_received};
  }

  void leave(const std::string& reason) const {
    if (control) control->leave(reason);
    if (gradients) gradients->leave(reason);
    if (messages) messages->close();
  }
};

}  // namespace cohort::collectives
