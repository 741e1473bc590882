#include "transport/in_process.h"

#include <string>
#include <utility>

#include "core/error.h"
#include "transport/mailbox.h"

namespace cohort::transport {
namespace {

struct Group {
  explicit Group(int size) {
    for (int rank = 0; rank < size; ++rank) {
      mailboxes.push_back(std::make_unique<Mailbox>(rank, size));
    }
  }
  std::vector<std::unique_ptr<Mailbox>> mailboxes;  // by owner
};

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Group> group, Rank rank)
      : Transport(rank, static_cast<int>(group->mailboxes.size())), group_(std::move(group)) {}
  ~InProcessTransport() override {
    shut();
    own().clear();
  }

  void send(Rank to, Tag tag, std::span<const std::byte> payload, Deadline) override {
    check_rank(to);
    Message message{rank(), tag, Bytes(payload.begin(), payload.end())};
    if (!group_->mailboxes[to]->put(std::move(message))) {
      throw PeerError(label() + "cannot send to rank " + std::to_string(to) +
                      ": one of the two has closed");
    }
  }

  Message receive(Rank from, Tag tag, Deadline deadline) override {
    check_rank(from);
    return own().receive(from, tag, deadline);
  }

  std::optional<Message> receive_any(Tag tag, Deadline deadline) override {
    return own().receive_any(tag, deadline);
  }

  std::string gone(Rank peer) const override {
    check_rank(peer);
    const std::string why = group_->mailboxes[rank()]->gone(peer);
    // Which it knows first itself: who could not send to it must find it gone.
    return why.empty() ? group_->mailboxes[peer]->gone(peer) : why;
  }

  void give_up(Rank peer) override {
    check_rank(peer);
    own().note_gone(peer, kGivenUp);
    group_->mailboxes[peer]->note_gone(rank());
  }

  void close() override { shut(); }

 private:
  // Own mailbox first: once a peer knows, no call of this rank can succeed any more.
  void shut() {
    own().note_gone(rank());
    for (const auto& mailbox : group_->mailboxes) mailbox->note_gone(rank());
  }

  Mailbox& own() { return *group_->mailboxes[rank()]; }
  std::string label() const { return "rank " + std::to_string(rank()) + ": "; }

  std::shared_ptr<Group> group_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_in_process_group(int size) {
  if (size < 1) {
    throw ConfigError("a group needs at least 1 rank, not " + std::to_string(size));
  }
  const auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<Transport>> members;
  members.reserve(size);
  for (Rank rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<InProcessTransport>(group, rank));
  }
  return members;
}

}  // namespace cohort::transport
