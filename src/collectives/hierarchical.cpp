#include "collectives/hierarchical.h"

#include <cstring>
#include <string>
#include <utility>

#include "collectives/farewell.h"
#include "core/error.h"

namespace cohort::collectives {
namespace {

struct Place {
  int group = -1;
  int index = -1;
};

// Several blobs as one: their lengths, then their bytes.
Bytes pack(const std::vector<Bytes>& parts) {
  std::size_t total = parts.size() * sizeof(std::uint64_t);
  for (const Bytes& part : parts) total += part.size();
  Bytes packed;
  packed.reserve(total);
  const auto append = [&](const void* data, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(data);
    packed.insert(packed.end(), first, first + bytes);
  };
  for (const Bytes& part : parts) {
    const std::uint64_t length = part.size();
    append(&length, sizeof length);
  }
  for (const Bytes& part : parts) append(part.data(), part.size());
  return packed;
}

std::vector<Bytes> unpack(const Bytes& packed, std::size_t count) {
  const auto damaged = [] { return PeerError("a rank sent a damaged list in all_gather"); };
  std::size_t place = count * sizeof(std::uint64_t);
  if (packed.size() < place) throw damaged();
  std::vector<Bytes> parts(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t length = 0;
    std::memcpy(&length, packed.data() + i * sizeof length, sizeof length);
    if (length > packed.size() - place) throw damaged();
    parts[i].assign(packed.begin() + static_cast<std::ptrdiff_t>(place),
                    packed.begin() + static_cast<std::ptrdiff_t>(place + length));
    place += length;
  }
  return parts;
}

int ranks_in(const GroupTable& groups) {
  std::size_t count = 0;
  for (const auto& group : groups) count += group.size();
  return static_cast<int>(count);
}

class Hierarchical final : public Collectives {
 public:
  Hierarchical(std::unique_ptr<Collectives> inner, std::shared_ptr<Collectives> outer,
               const GroupTable& groups, Rank rank)
      : Collectives(rank, ranks_in(groups)),
        inner_(std::move(inner)),
        outer_(std::move(outer)),
        groups_(groups),
        places_(size()) {
    for (std::size_t group = 0; group < groups.size(); ++group) {
      for (std::size_t index = 0; index < groups[group].size(); ++index) {
        const Rank member = groups[group][index];
        COHORT_CHECK(member >= 0 && member < size() && places_[member].group < 0,
                     "every rank stands once in the table of groups");
        places_[member] = {static_cast<int>(group), static_cast<int>(index)};
      }
    }
    COHORT_CHECK(rank >= 0 && rank < size(), "no such rank");
    COHORT_CHECK(inner_->rank() == place().index, "the inner rank is the index in the group");
    COHORT_CHECK(!leads() || (outer_ != nullptr && outer_->rank() == place().group),
                 "the leader has the outer collectives, with its group's number");
  }

  void all_reduce(std::span<float> values, Deadline deadline) override {
    guarded([&] {
      inner_->all_reduce(values, deadline);
      if (leads()) outer_->all_reduce(values, deadline);
      inner_->broadcast(std::as_writable_bytes(values), 0, deadline);
    });
  }

  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override {
    std::vector<Bytes> all(places_.size());
    guarded([&] {
      const std::vector<Bytes> group = inner_->all_gather(own, deadline);
      Bytes packed;
      if (leads()) packed = pack(outer_->all_gather(pack(group), deadline));
      std::uint64_t length = packed.size();
      inner_->broadcast(std::as_writable_bytes(std::span(&length, 1)), 0, deadline);
      packed.resize(length);
      inner_->broadcast(packed, 0, deadline);
      const std::vector<Bytes> packed_groups = unpack(packed, groups_.size());
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        std::vector<Bytes> parts = unpack(packed_groups[i], groups_[i].size());
        for (std::size_t j = 0; j < parts.size(); ++j) all[groups_[i][j]] = std::move(parts[j]);
      }
    });
    return all;
  }

  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override {
    COHORT_CHECK(root >= 0 && root < size(), "no rank " + std::to_string(root));
    guarded([&] {
      const Place from = places_[root];
      const bool here = from.group == place().group;
      if (here) inner_->broadcast(bytes, from.index, deadline);
      if (leads()) outer_->broadcast(bytes, from.group, deadline);
      if (!here) inner_->broadcast(bytes, 0, deadline);
    });
  }

  void barrier(Deadline deadline) override {
    guarded([&] {
      inner_->barrier(deadline);
      if (leads()) outer_->barrier(deadline);
      inner_->barrier(deadline);
    });
  }

  void leave(const std::string& reason) override {
    pass_on(farewell("rank " + std::to_string(rank()), reason));
  }

  Traffic traffic() const override {
    Traffic sum = inner_->traffic();
    if (leads()) {
      const Traffic outside = outer_->traffic();
      sum.sent += outside.sent;
      sum.received += outside.received;
    }
    return sum;
  }

 private:
  Place place() const { return places_[rank()]; }
  bool leads() const { return place().index == 0; }

  template <class Operation>
  void guarded(Operation&& operation) {
    try {
      operation();
    } catch (const PeerError& error) {
      pass_on(error.what());
      throw;
    }
  }

  void pass_on(const std::string& reason) {
    inner_->leave(reason);
    if (outer_) outer_->leave(reason);
  }

  std::unique_ptr<Collectives> inner_;
  std::shared_ptr<Collectives> outer_;
  GroupTable groups_;
  std::vector<Place> places_;  // by rank
};

}  // namespace

std::unique_ptr<Collectives> make_hierarchical(std::unique_ptr<Collectives> inner,
                                               std::shared_ptr<Collectives> outer,
                                               const GroupTable& groups, Rank rank) {
  return std::make_unique<Hierarchical>(std::move(inner), std::move(outer), groups, rank);
}

}  // namespace cohort::collectives
