// What happens in the simulation of a parameter server.
#pragma once

#include "simulation/virtual_time.h"

namespace cohort::server::simulation {

enum class EventKind : std::uint8_t {
  kTick,        // of the server and of every connection's silence
  kDeliver,     // subject: connection; extra: which end receives
  kProcess,     // subject: process; extra: its generation. A step of its work is done
  kConnect,     // subject: process. It tries to reach the server
  kPersisted,   // subject: boot; extra: the snapshot's id
  kRoom,        // subject: connection. It takes more values
  kServerUp,    // the server's process starts
  kWakeServer,  // SIGCONT
  kWake,        // subject: process
  kKill,        // subject: process, a zombie that its supervisor finds at last
  kEndJob,      // every process ends, and new ones are started with a checkpoint
  kSpawn,       // subject: rank. A new process for it starts
  kFault,       // subject: which kind
  kCalm,        // no faults any more
};

using Events = cohort::simulation::EventQueue<EventKind>;
using Event = Events::Event;

}  // namespace cohort::server::simulation
