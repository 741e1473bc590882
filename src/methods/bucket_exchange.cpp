#include "methods/bucket_exchange.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <utility>

#include "core/error.h"

namespace cohort::methods {
namespace {

// A function that returns once the device has done what it was given up to now.
std::function<void()> marker(const at::Device& device) {
  if (device.is_cpu()) return nullptr;
  const c10::impl::VirtualGuardImpl guard(device.type());
  auto event = std::make_shared<c10::Event>(device.type());
  event->record(guard.getStream(device));
  return [event] {
    // Gradients are at most a step away, and the device itself has no deadline to give.
    while (!event->query()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  };
}

std::span<float> floats(const at::Tensor& values) {
  return {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())};
}

}  // namespace

void sum_over_ranks(collectives::Collectives& collectives, bool on_device, const at::Tensor& values,
                    Deadline deadline) {
  if (on_device) {
    // It sums on a stream of its own.
    if (const auto wait_until_complete = marker(values.device())) wait_until_complete();
  }
  if (values.device().is_cpu() || on_device) {
    collectives.all_reduce(floats(values), deadline);
    return;
  }
  at::Tensor staged = values.cpu();
  collectives.all_reduce(floats(staged), deadline);
  values.copy_(staged);
}

void broadcast_from(collectives::Collectives& collectives, Rank root, const at::Tensor& values,
                    Deadline deadline) {
  COHORT_CHECK(values.is_non_overlapping_and_dense(), "only dense tensors travel");
  const auto bytes = [](const at::Tensor& tensor) {
    return std::span(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  };
  if (values.device().is_cpu()) {
    collectives.broadcast(bytes(values), root, deadline);
    return;
  }
  at::Tensor staged = values.cpu();
  collectives.broadcast(bytes(staged), root, deadline);
  values.copy_(staged);
}

BucketExchange::BucketExchange(collectives::Collectives& collectives, bool on_device,
                               std::chrono::nanoseconds patience, ArrivalLog* arrivals)
    : collectives_(collectives),
      on_device_(on_device),
      patience_(patience),
      arrivals_(arrivals),
      thread_([this] { run(); }) {}

BucketExchange::~BucketExchange() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void BucketExchange::submit(const at::Tensor& arena, Range range) {
  Work work{arena.narrow(0, range.begin, range.size), marker(arena.device())};
  if (arrivals_ != nullptr && !work.wait_until_complete) arrivals_->arrived();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    ++unfinished_;
  }
  changed_.notify_all();
}

void BucketExchange::wait() {
  std::unique_lock lock(mutex_);
  // Each sum under way has a deadline of its own, so this ends.
  changed_.wait(lock, [&] { return unfinished_ == 0 || error_; });
  if (error_) std::rethrow_exception(error_);
}

void BucketExchange::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      sum(work);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --unfinished_;
    if (error) {
      error_ = error;
      waiting_.clear();
    }
    if (error_ || unfinished_ == 0) changed_.notify_all();
  }
}

void BucketExchange::sum(const Work& work) {
  if (work.wait_until_complete) {
    work.wait_until_complete();
    if (arrivals_ != nullptr) arrivals_->arrived();
  }
  sum_over_ranks(collectives_, on_device_, work.values, deadline_in(patience_));
}

}  // namespace cohort::methods
