// The owner of the mapping in one process. For process_shared.cpp and process_channel.cpp alone.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "collectives/barrier.h"
#include "collectives/process_board.h"
#include "collectives/process_layout.h"
#include "collectives/process_shared.h"
#include "collectives/shared_mapping.h"

namespace cohort::collectives {

// The mapping, the board in it, and how its channels fail. May be used from several threads.
class SharedByProcesses final : public ProcessShared,
                                public std::enable_shared_from_this<SharedByProcesses> {
 public:
  SharedByProcesses(SharedMapping mapping, const ProcessGroup& group, int own)
      : mapping_(std::move(mapping)),
        layout_(group.ranks, group.channels),
        channels_(group.channels),
        own_(own),
        patience_(SpinPolicy::for_group(layout_.size(), true)),
        board_(mapping_.data(), group.ranks, own, group.silence, [this](const std::string& text) {
          for (int channel = 0; channel < channels_; ++channel) fail(channel, text);
        }) {}

  const std::string& name() const override { return mapping_.name(); }

  void wait_for_all(Deadline deadline) override {
    board_.wait_for_all(deadline);
    mapping_.remove_name();
    patience_ = SpinPolicy::for_group(layout_.size(), true, board_.cores());
    can_read_others_ = board_.can_read_others();
  }

  std::unique_ptr<Collectives> channel(int index) override;

  std::shared_ptr<Activity> activity(int process, int index) override {
    return {shared_from_this(), &board_.activity(process, index)};
  }

  std::string failure(int channel) const override {
    if (!head(channel).barrier.broken()) return "";
    std::string text = head(channel).note.read();
    return head(channel).note.orderly() ? "" : text;
  }

  // The first reason counts.
  void fail(int channel, const std::string& reason, bool orderly = false) {
    head(channel).note.write(reason, orderly);
    head(channel).barrier.break_up(true);
    for (int member = 0; member < layout_.size(); ++member) {
      auto* seat = reinterpret_cast<process_layout::Seat*>(memory(channel) + layout_.seat(member));
      std::launder(seat)->presence.wake_all(true);
    }
  }

  std::byte* memory(int channel) const { return mapping_.data() + layout_.channel(channel); }
  const ProcessBoard& board() const { return board_; }
  const process_layout::Layout& layout() const { return layout_; }
  const SpinPolicy& patience() const { return patience_; }
  bool can_read_others() const { return can_read_others_; }
  int own() const { return own_; }

 private:
  process_layout::ChannelHead& head(int channel) const {
    return *std::launder(reinterpret_cast<process_layout::ChannelHead*>(memory(channel)));
  }

  SharedMapping mapping_;
  const process_layout::Layout layout_;
  const int channels_;
  const int own_;
  SpinPolicy patience_;
  bool can_read_others_ = false;
  ProcessBoard board_;  // last: its thread uses the others
};

}  // namespace cohort::collectives
