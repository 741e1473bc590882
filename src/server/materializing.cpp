// Updates take effect by and by, from the first element on, and values are sent in the same order.
// So several versions are in the memory at once, the newer ones in front: a worker that is sent
// version 7 goes ahead of one that is sent version 8, and both get exactly that.
//
// Nobody waits for a slower one: what it has not read yet is sent to it before it changes, and
// where its connection does not take that, copied.
#include "server/server_state.h"

namespace cohort::server {

void ParameterServer::State::queue_update(std::span<const float> gradients, double scale) {
  ports.version_changes();
  model->queue_update(gradients, scale);
}

// Makes the first `count` elements those of that version, where they are older.
void ParameterServer::State::materialize(std::uint64_t version, std::size_t count) {
  const std::size_t begin = model->materialized(version);
  if (begin >= count) return;
  for (Member& other : members->all()) {
    while (other.reading && other.reading->version < version && other.reading->place < count) {
      send_piece(other);
    }
  }
  memory_changes(model->parameters().subspan(begin, count - begin));
  for (std::size_t i = 0; i < model->slot_count(); ++i) {
    memory_changes(model->slot(i).subspan(begin, count - begin));
  }
  model->materialize(version, count);
}

void ParameterServer::State::materialize() {
  materialize(model->version(), static_cast<std::size_t>(spec->size));
}

// A push is about to come into it, and it may still hold an update that is under way.
void ParameterServer::State::free_memory(const StagedPush& push) {
  const auto version = model->waits_for(push.gradients);
  if (version) materialize(*version, static_cast<std::size_t>(spec->size));
}

void ParameterServer::State::memory_changes(std::span<const float> memory) {
  ports.model_changes(std::as_bytes(memory));
}

}  // namespace cohort::server
