#include "membership/worker_channel.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "core/error.h"

namespace cohort::membership {

WorkerChannel::WorkerChannel(boost::asio::io_context& io, const WorkerOptions& options, Rank server,
                             network::Address address, std::string name,
                             std::function<void()> changed)
    : io_(io),
      options_(options),
      server_(server),
      address_(std::move(address)),
      name_(std::move(name)),
      changed_(std::move(changed)) {}

WorkerChannel::~WorkerChannel() = default;

void WorkerChannel::connect(Deadline deadline) {
  connector_ = network::connect(
      io_,
      {.address = address_,
       .self = {options_.job, network::Role::kWorker, options_.worker},
       .peer = {options_.job, network::Role::kServer, server_},
       .credentials = options_.credentials,
       .links = options_.links,
       .runtime_folder = options_.runtime_folder,
       .shared_memory = options_.shared_memory,
       .returning = pause_.returning(),
       .first_pause = pause_.next(Clock::now())},
      deadline, [this](std::unique_ptr<network::Link> link) { linked(std::move(link)); },
      [this](const network::ConnectFailure& failure) { not_linked(failure); });
}

void WorkerChannel::linked(std::unique_ptr<network::Link> link) {
  pause_.linked(Clock::now());
  link_ = std::move(link);
  link_->set_handler(*this);
  client_->on_connected(Clock::now());
  changed_();
}

void WorkerChannel::not_linked(const network::ConnectFailure& failure) {
  const std::string text = worker_text() + ": " + failure.reason;
  failure_ = failure.kind == network::ConnectFailure::Kind::kRefused
                 ? std::make_exception_ptr(ConfigError(text))
                 : std::make_exception_ptr(PeerError(text));
  changed_();
}

std::string WorkerChannel::text() const {
  const std::string text = name_ + " at " + address_.text();
  if (link_) return text + " (" + client_->waits_for() + ")";
  return text + " (not connected" + (connector_ ? ": " + connector_->obstacle() : "") + ")";
}

std::optional<std::span<std::byte>> WorkerChannel::place_for(network::Link&,
                                                             const network::FrameHeader& header) {
  return client_->place_for(header);
}

void WorkerChannel::frame_arrived(network::Link&, const network::FrameHeader& header,
                                  std::span<const std::byte> payload) {
  client_->on_frame(header, payload, Clock::now());
  const MembershipClient& member = client_->membership();
  if (member.refused() && !failure_) {
    failure_ = std::make_exception_ptr(
        ConfigError(name_ + " will not have " + worker_text() + ": " + *member.refused()));
  }
  if (member.rejoined() > rejoined_) {
    rejoined_ = member.rejoined();
    options_.note(worker_text() + " was given up by " + name_ + " meanwhile, and has joined again");
  }
  if (member.left()) link_->close_after_sending();
  changed_();
}

void WorkerChannel::link_lost(network::Link&, const std::string& reason) {
  client_->on_lost(Clock::now());
  if (client_->membership().left() || failure_) return;
  options_.note(name_ + " is gone (" + reason + "); trying again");
  boost::asio::post(io_, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    drop_link();
    try {
      connect(deadline_in(options_.patience));
    } catch (const Error&) {  // as when certificates are gone
      failure_ = std::current_exception();
      changed_();
    }
  });
}

}  // namespace cohort::membership
