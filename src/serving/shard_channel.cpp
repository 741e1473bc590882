#include "serving/shard_channel.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "core/error.h"

namespace cohort {

ShardChannel::ShardChannel(boost::asio::io_context& io, const ParameterClientOptions& options,
                           int server, const ClientArenas& arenas, std::function<void()> changed)
    : io_(io),
      options_(options),
      server_(server),
      arenas_(arenas),
      changed_(std::move(changed)),
      blocks_(options.layout.of_server(server)),
      size_(options.layout.sizes[static_cast<std::size_t>(server)]),
      direct_(options.servers.size() == 1 &&
              size_ == static_cast<std::int64_t>(arenas.parameters.size())),
      client_(
          {options.worker, options.specs[static_cast<std::size_t>(server)], options.window_bytes},
          *this) {
  for (const Block& block : blocks_) direct_ = direct_ && block.place == block.range.begin;
  if (direct_) return;
  gradients_.resize(static_cast<std::size_t>(size_));
  values_.resize(static_cast<std::size_t>(size_));
}

ShardChannel::~ShardChannel() = default;

void ShardChannel::connect(Deadline deadline) {
  const auto server = static_cast<std::size_t>(server_);
  connector_ = cohort::connect(
      io_,
      {.address = options_.servers[server],
       .self = {options_.job, Role::kWorker, options_.worker},
       .peer = {options_.job, Role::kServer, server_},
       .credentials = options_.credentials,
       .links = options_.links,
       .runtime_folder = options_.runtime_folder,
       .shared_memory = options_.shared_memory},
      deadline, [this](std::unique_ptr<Link> link) { connected(std::move(link)); },
      [this](const ConnectFailure& failure) { not_connected(failure); });
}

void ShardChannel::connected(std::unique_ptr<Link> link) {
  link_ = std::move(link);
  link_->set_handler(*this);
  client_.on_connected(Clock::now());
  changed_();
}

void ShardChannel::not_connected(const ConnectFailure& failure) {
  const std::string text = "worker " + std::to_string(options_.worker) + ": " + failure.reason;
  failure_ = failure.kind == ConnectFailure::Kind::kRefused
                 ? std::make_exception_ptr(ConfigError(text))
                 : std::make_exception_ptr(PeerError(text));
  changed_();
}

void ShardChannel::bring(std::uint64_t updates) {
  if (direct_) {
    std::vector<std::span<const float>> slots(arenas_.slots.begin(), arenas_.slots.end());
    client_.initialize(arenas_.parameters, slots, updates);
    return;
  }
  const auto shard_of = [&](std::span<const float> arena) {
    std::vector<float> own(static_cast<std::size_t>(size_));
    for (const Block& block : blocks_) {
      std::copy_n(arena.begin() + block.range.begin, block.range.size, own.begin() + block.place);
    }
    return own;
  };
  initial_.push_back(shard_of(arenas_.parameters));
  for (const std::span<float> slot : arenas_.slots) initial_.push_back(shard_of(slot));
  const std::vector<std::span<const float>> views(initial_.begin(), initial_.end());
  client_.initialize(views.front(), std::span(views).subspan(1), updates);
}

void ShardChannel::begin_push() {
  if (size_ == 0) return;
  gathered_ = 0;
  client_.begin_push(direct_ ? arenas_.gradients : std::span<const float>(gradients_));
}

void ShardChannel::extend_push(std::int64_t count) {
  if (size_ > 0) client_.extend_push(direct_ ? count : gather(count));
}

// Copies the blocks that are complete; returns how many elements of the shard that makes.
std::int64_t ShardChannel::gather(std::int64_t count) {
  while (gathered_ < blocks_.size() && blocks_[gathered_].range.end() <= count) {
    const Block& block = blocks_[gathered_++];
    std::copy_n(arenas_.gradients.begin() + block.range.begin, block.range.size,
                gradients_.begin() + block.place);
  }
  return gathered_ == blocks_.size() ? size_ : blocks_[gathered_].place;
}

void ShardChannel::pull_parameters() { pull(arenas_.parameters, 0); }

void ShardChannel::pull_exact() { pull(arenas_.parameters, kExactParameters); }

void ShardChannel::pull_slot(std::size_t slot) {
  pull(arenas_.slots[slot], static_cast<std::uint32_t>(slot + 1));
}

void ShardChannel::pull_when_alone() { pull(arenas_.parameters, kPullWhenAlone); }

void ShardChannel::pull(std::span<float> into, std::uint32_t which) {
  if (size_ == 0) return;
  pull_into_ = into;
  scattered_ = direct_;
  client_.pull(direct_ ? into : std::span<float>(values_), which);
}

bool ShardChannel::pulled() {
  if (size_ == 0) return true;
  if (!client_.pulled()) return false;
  initial_.clear();
  if (!scattered_) scatter();
  return true;
}

bool ShardChannel::step_done() {
  return size_ == 0 || (client_.push_outcome().has_value() && pulled());
}

void ShardChannel::scatter() {
  for (const Block& block : blocks_) {
    std::copy_n(values_.begin() + block.place, block.range.size,
                pull_into_.begin() + block.range.begin);
  }
  scattered_ = true;
}

void ShardChannel::leave() { client_.leave(); }

void ShardChannel::add_to(StepOutcome& outcome) const {
  outcome.finished = outcome.finished || client_.finished();
  const std::optional<PushOutcome>& push = client_.push_outcome();
  if (!push) return;
  outcome.staleness = std::max(outcome.staleness, push->staleness);
  outcome.dropped += push->kind == PushOutcome::Kind::kDropped ? 1 : 0;
  outcome.fenced += push->kind == PushOutcome::Kind::kFenced ? 1 : 0;
  if (push->kind != PushOutcome::Kind::kRejected) return;
  ++outcome.rejected;
  outcome.reason = push->reason;
}

std::string ShardChannel::text() const {
  std::string text = "server " + std::to_string(server_) + " at " +
                     options_.servers[static_cast<std::size_t>(server_)].text();
  return text + " (" + (link_ ? client_.waits_for() : "not connected") + ")";
}

void ShardChannel::send(const FrameHeader& header, std::span<const std::byte> payload, Kept kept) {
  if (link_) link_->send(header, payload, kept);
}

std::optional<std::span<std::byte>> ShardChannel::place_for(Link&, const FrameHeader& header) {
  return client_.place_for(header);
}

void ShardChannel::frame_arrived(Link&, const FrameHeader& header,
                                 std::span<const std::byte> payload) {
  client_.on_frame(header, payload, Clock::now());
  if (const auto& refused = client_.refused(); refused && !failure_) {
    failure_ = std::make_exception_ptr(
        ConfigError("server " + std::to_string(server_) + " will not have worker " +
                    std::to_string(options_.worker) + ": " + *refused));
  }
  if (client_.rejoined() > rejoined_) {
    rejoined_ = client_.rejoined();
    options_.note("worker " + std::to_string(options_.worker) + " was given up by server " +
                  std::to_string(server_) + " meanwhile, and has joined again");
  }
  note_traffic();
  changed_();
}

void ShardChannel::link_lost(Link&, const std::string& reason) {
  note_traffic();
  earlier_sent_ = sent_;
  earlier_received_ = received_;
  client_.on_lost(Clock::now());
  if (client_.left() || failure_) return;
  options_.note("server " + std::to_string(server_) + " is gone (" + reason + "); trying again");
  boost::asio::post(io_, [this] {
    link_.reset();
    connect(deadline_in(options_.patience));
  });
}

void ShardChannel::note_traffic() {
  sent_.store(earlier_sent_ + link_->bytes_sent(), std::memory_order_relaxed);
  received_.store(earlier_received_ + link_->bytes_received(), std::memory_order_relaxed);
}

}  // namespace cohort
