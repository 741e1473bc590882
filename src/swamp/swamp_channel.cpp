#include "swamp/swamp_channel.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "core/error.h"

namespace cohort {

SwampChannel::SwampChannel(boost::asio::io_context& io, const SwampClientOptions& options,
                           std::function<void()> changed)
    : io_(io),
      options_(options),
      changed_(std::move(changed)),
      client_(options.worker, options.spec, *this) {}

SwampChannel::~SwampChannel() = default;

void SwampChannel::connect(Deadline deadline) {
  connector_ = cohort::connect(
      io_,
      {.address = options_.server,
       .self = {options_.job, Role::kWorker, options_.worker},
       .peer = {options_.job, Role::kServer, 0},
       .credentials = options_.credentials,
       .links = options_.links,
       .runtime_folder = options_.runtime_folder,
       .shared_memory = options_.shared_memory,
       .returning = pause_.returning(),
       .first_pause = pause_.next(Clock::now())},
      deadline, [this](std::unique_ptr<Link> link) { connected(std::move(link)); },
      [this](const ConnectFailure& failure) { not_connected(failure); });
}

void SwampChannel::connected(std::unique_ptr<Link> link) {
  pause_.linked(Clock::now());
  link_ = std::move(link);
  link_->set_handler(*this);
  client_.on_connected(Clock::now());
  changed_();
}

void SwampChannel::not_connected(const ConnectFailure& failure) {
  const std::string text = "worker " + std::to_string(options_.worker) + ": " + failure.reason;
  failure_ = failure.kind == ConnectFailure::Kind::kRefused
                 ? std::make_exception_ptr(ConfigError(text))
                 : std::make_exception_ptr(PeerError(text));
  changed_();
}

std::string SwampChannel::text() const {
  const std::string text = "the best-model server at " + options_.server.text();
  if (link_) return text + " (" + client_.waits_for() + ")";
  return text + " (not connected" + (connector_ ? ": " + connector_->obstacle() : "") + ")";
}

void SwampChannel::send(const FrameHeader& header, std::span<const std::byte> payload,
                        const ModelValues& owner) {
  if (link_) lent_.send(*link_, header, payload, owner);
}

std::optional<std::span<std::byte>> SwampChannel::place_for(Link&, const FrameHeader& header) {
  return client_.place_for(header);
}

void SwampChannel::frame_arrived(Link&, const FrameHeader& header,
                                 std::span<const std::byte> payload) {
  client_.on_frame(header, payload, Clock::now());
  if (const auto& refused = client_.membership().refused(); refused && !failure_) {
    failure_ =
        std::make_exception_ptr(ConfigError("the best-model server will not have worker " +
                                            std::to_string(options_.worker) + ": " + *refused));
  }
  if (client_.membership().rejoined() > rejoined_) {
    rejoined_ = client_.membership().rejoined();
    options_.note("worker " + std::to_string(options_.worker) +
                  " is not known to the best-model server any more, and joins again");
  }
  lent_.release(*link_);
  if (client_.left()) link_->close_after_sending();
  changed_();
}

void SwampChannel::link_lost(Link&, const std::string& reason) {
  client_.on_lost(Clock::now());
  if (client_.left() || failure_) return;
  options_.note("the best-model server is gone (" + reason + "); trying again");
  boost::asio::post(io_, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    link_.reset();
    lent_ = {};
    try {
      connect(deadline_in(options_.patience));
    } catch (const Error&) {  // as when certificates are gone
      failure_ = std::current_exception();
      changed_();
    }
  });
}

}  // namespace cohort
