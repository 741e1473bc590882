#include "serving/shard_channel.h"

#include <algorithm>
#include <utility>

namespace cohort::serving {

ShardChannel::ShardChannel(boost::asio::io_context& io, const ParameterClientOptions& options,
                           int server, const ClientArenas& arenas, std::function<void()> changed)
    : membership::WorkerChannel(io, options, server,
                                options.servers[static_cast<std::size_t>(server)],
                                "server " + std::to_string(server), std::move(changed)),
      options_(options),
      server_(server),
      arenas_(arenas),
      blocks_(options.layout.of_server(server)),
      size_(options.layout.sizes[static_cast<std::size_t>(server)]),
      client_({options.worker, options.specs[static_cast<std::size_t>(server)], options.join,
               options.window_bytes},
              *this) {
  serve(client_);
}

ShardChannel::~ShardChannel() { drop_link(); }

// The server's part of one of the worker's vectors.
template <class T>
server::ArenaView<T> ShardChannel::own_part(std::span<T> vector) const {
  server::ArenaView<T> view;
  for (const server::Block& block : blocks_) {
    view.append(vector.subspan(static_cast<std::size_t>(block.range.begin),
                               static_cast<std::size_t>(block.range.size)));
  }
  return view;
}

void ShardChannel::bring(const server::ModelProgress& behind) {
  std::vector<server::ArenaView<const float>> slots;
  for (const std::span<const float> slot : arenas_.slots) slots.push_back(own_part(slot));
  client_.initialize(own_part(std::span<const float>(arenas_.parameters)), slots, behind);
}

void ShardChannel::begin_push() {
  left_out_ = to_leave_out_ > 0;
  if (left_out_) --to_leave_out_;
  if (size_ == 0 || left_out_) return;
  complete_ = 0;
  client_.begin_push(own_part(arenas_.gradients));
}

void ShardChannel::extend_push(std::int64_t count) {
  if (size_ == 0 || left_out_) return;
  while (complete_ < blocks_.size() && blocks_[complete_].range.end() <= count) ++complete_;
  if (complete_ == blocks_.size()) return client_.extend_push(size_);
  const server::Block& next = blocks_[complete_];
  client_.extend_push(next.place + std::max<std::int64_t>(0, count - next.range.begin));
}

void ShardChannel::push(std::int64_t count) {
  begin_push();
  pull_parameters();
  extend_push(count);
}

void ShardChannel::pull_parameters() { pull(arenas_.parameters, 0); }

void ShardChannel::take_back() {
  if (size_ == 0) return;
  if (left_out_) return pull_exact();
  client_.take_back(own_part(arenas_.parameters));
}

bool ShardChannel::push_made() const { return size_ == 0 || left_out_ || client_.push_made(); }

void ShardChannel::pull_exact() { pull(arenas_.parameters, server::kExactParameters); }

void ShardChannel::pull_slot(std::size_t slot) {
  pull(arenas_.slots[slot], static_cast<std::uint32_t>(slot + 1));
}

void ShardChannel::pull_when_alone() { pull(arenas_.parameters, server::kPullWhenAlone); }

void ShardChannel::pull(std::span<float> into, std::uint32_t which) {
  if (size_ > 0) client_.pull(own_part(into), which);
}

bool ShardChannel::step_done() const {
  return size_ == 0 || ((left_out_ || client_.push_outcome().has_value()) && pulled());
}

bool ShardChannel::was_fenced() const {
  const std::optional<server::PushOutcome>& push = client_.push_outcome();
  return !left_out_ && push && push->kind == server::PushOutcome::Kind::kFenced;
}

void ShardChannel::leave(membership::LeaveKind how) { client_.leave(how); }

void ShardChannel::add_to(StepOutcome& outcome) const {
  if (size_ > 0) outcome.finished = outcome.finished && client_.finished();
  const std::optional<server::PushOutcome>& push = client_.push_outcome();
  if (!push || left_out_) return;
  outcome.staleness = std::max(outcome.staleness, push->staleness);
  outcome.dropped += push->kind == server::PushOutcome::Kind::kDropped ? 1 : 0;
  outcome.fenced += was_fenced() ? 1 : 0;
  if (push->kind != server::PushOutcome::Kind::kRejected) return;
  ++outcome.rejected;
  outcome.reason = push->reason;
}

void ShardChannel::send(const network::FrameHeader& header, std::span<const std::byte> payload,
                        network::Kept kept) {
  if (link()) link()->send(header, payload, kept);
}

void ShardChannel::send_ahead(const network::FrameHeader& header) {
  if (link()) link()->send_ahead(header);
}

std::size_t ShardChannel::piece_bytes() const {
  return link() ? link()->piece_bytes() : server::kPieceBytes;
}

bool ShardChannel::both_ways() const { return link() && !link()->local(); }

}  // namespace cohort::serving
