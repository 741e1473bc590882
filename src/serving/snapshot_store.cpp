#include "serving/snapshot_store.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"

namespace cohort::serving {
namespace {

constexpr const char* kParameters = "parameters";
constexpr const char* kState = "server";

std::string slot_name(std::size_t slot) { return "slot" + std::to_string(slot); }

std::shared_ptr<const std::vector<float>> shared(std::vector<float> values) {
  return std::make_shared<const std::vector<float>>(std::move(values));
}

}  // namespace

std::optional<server::ServerSnapshot> SnapshotStore::load(
    const std::function<void(const std::string&)>& warn) const {
  const std::optional<storage::StateSnapshot> loaded = folder_.load(warn);
  if (!loaded) return std::nullopt;
  const auto state = loaded->extra.find(kState);
  const auto parameters = loaded->find(kParameters);
  if (state == loaded->extra.end() || !state->is_string() || parameters == nullptr) {
    throw FileError("the newest snapshot in --state-dir is not a parameter server's");
  }
  server::ServerSnapshot snapshot;
  snapshot.id = loaded->id;
  snapshot.newest = loaded->newest;
  snapshot.state = state->get<std::string>();
  snapshot.parameters = *parameters;
  for (std::size_t slot = 0;; ++slot) {
    const auto values = loaded->find(slot_name(slot));
    if (values == nullptr) return snapshot;
    snapshot.slots.push_back(*values);
  }
}

void SnapshotStore::write(server::ServerSnapshot snapshot, storage::StateFolder::Written written) {
  storage::StateSnapshot kept;
  kept.id = snapshot.id;
  kept.extra[kState] = std::move(snapshot.state);
  kept.vectors.emplace_back(kParameters, shared(std::move(snapshot.parameters)));
  for (std::size_t slot = 0; slot < snapshot.slots.size(); ++slot) {
    kept.vectors.emplace_back(slot_name(slot), shared(std::move(snapshot.slots[slot])));
  }
  folder_.write(std::move(kept), std::move(written));
}

}  // namespace cohort::serving
