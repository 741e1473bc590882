// A best-model server in a thread of a test, behind a Unix socket in a folder of its own, with an
// examiner that finds what a model's first value says.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "swamp/swamp_client.h"
#include "swamp/swamp_server.h"

namespace cohort::swamp {

// The loss of sample i is the model's first value plus i / 16.
class FirstValueExaminer final : public Examiner {
 public:
  explicit FirstValueExaminer(std::function<void(float)> before = {})
      : before_(std::move(before)) {}

  std::vector<float> losses(std::span<const float> model, std::uint64_t) override {
    if (before_) before_(model[0]);
    std::vector<float> all;
    for (int i = 0; i < 8; ++i) all.push_back(model[0] + static_cast<float>(i) / 16);
    return all;
  }

  static double mean_of(float value) { return double{value} + 3.5 / 16; }

 private:
  std::function<void(float)> before_;
};

class SwampGroup {
 public:
  explicit SwampGroup(bool keeps_state = false) {
    std::string pattern = std::filesystem::temp_directory_path() / "cohort-swamp-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    options.listener.address.path = (folder_ / "s").string();
    options.listener.self = {job, network::Role::kServer, 0};
    if (keeps_state) options.state_dir = folder_ / "state";
    options.make_examiner = [this](const SwampSpec&) {
      return std::make_unique<FirstValueExaminer>(before);
    };
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_ += line + "\n";
    };
    options.accepted = [this](std::uint64_t version, double, std::span<const float> values) {
      const std::lock_guard lock(mutex_);
      accepted_.emplace_back(version, values[0]);
    };
  }
  SwampGroup(const SwampGroup&) = delete;
  SwampGroup& operator=(const SwampGroup&) = delete;
  ~SwampGroup() {
    kill();
    std::filesystem::remove_all(folder_);
  }

  void start() {
    stop_ = false;
    server_ = std::make_unique<SwampServer>(options);
    address_ = server_->address();
    thread_ = std::thread([this] {
      try {
        report_ = server_->run(stop_);
      } catch (...) {
        failure_ = std::current_exception();
      }
    });
  }

  // Without a farewell, as if it had been killed.
  void kill() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }

  // Waits until it has ended by itself.
  const SwampReport& ended() {
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
    return report_;
  }

  SwampClientOptions client(Rank worker, const SwampSpec& spec) const {
    SwampClientOptions given;
    given.server = address_;
    given.job = job;
    given.worker = worker;
    given.credentials = options.listener.credentials;
    given.spec = spec;
    return given;
  }

  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  std::vector<std::pair<std::uint64_t, float>> accepted() {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }

  network::JobId job = network::job_id_of("a swamp");
  SwampServerOptions options;
  std::function<void(float)> before;  // an examination of a model with this first value
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  network::Address address_;
  std::atomic<bool> stop_ = false;
  SwampReport report_;
  std::exception_ptr failure_;
  std::mutex mutex_;  // guards the next two
  std::string log_;
  std::vector<std::pair<std::uint64_t, float>> accepted_;
  std::unique_ptr<SwampServer> server_;
  std::thread thread_;
};

}  // namespace cohort::swamp
