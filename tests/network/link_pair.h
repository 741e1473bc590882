// Two ends of a link on one event loop, for tests, over any of the ways a link can go.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "network/connector.h"
#include "network/listener.h"

namespace cohort::network::test {

inline constexpr FrameType kData = kFirstFreeType + 8;

// A folder of this user alone that vanishes with the object.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "cohort-net-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw RunError("no folder for the test");
    path_ = name;
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_; }

 private:
  std::string path_;
};

struct Frame {
  FrameHeader header;
  Bytes payload;
};

// Keeps all that arrives.
class Recorder : public LinkHandler {
 public:
  std::optional<std::span<std::byte>> place_for(Link&, const FrameHeader& header) override {
    if (!place) return std::nullopt;
    return place(header);
  }
  void all_sent(Link&) override { ++times_all_sent; }
  void frame_arrived(Link& link, const FrameHeader& header,
                     std::span<const std::byte> payload) override {
    if (arrived) arrived(link, header, payload);
    frames.push_back({header, {payload.begin(), payload.end()}});
  }
  void link_lost(Link&, const std::string& reason) override {
    ++losses;
    lost = reason;
  }

  std::function<std::optional<std::span<std::byte>>(const FrameHeader&)> place;
  std::function<void(Link&, const FrameHeader&, std::span<const std::byte>)> arrived;
  std::deque<Frame> frames;
  std::optional<std::string> lost;
  int losses = 0;
  int times_all_sent = 0;
};

// Runs the loop until `done`, or the time is up. Whether it was done.
inline bool run_until(boost::asio::io_context& io, const std::function<bool()>& done,
                      std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  const Deadline deadline = deadline_in(limit);
  io.restart();
  while (!done()) {
    if (Clock::now() >= deadline) return false;
    io.run_one_for(std::chrono::milliseconds(5));
    if (io.stopped()) io.restart();
  }
  return true;
}

// Runs the loop for so long. How long it stood still at most: the machine may be busy.
inline Clock::duration run_for(boost::asio::io_context& io, std::chrono::milliseconds time) {
  auto last = Clock::now();
  Clock::duration longest{0};
  run_until(
      io,
      [&] {
        longest = std::max(longest, Clock::now() - last);
        last = Clock::now();
        return false;
      },
      time);
  return longest;
}

inline Identity worker(Rank rank, std::string_view job = "test") {
  return {job_id_of(job), Role::kWorker, rank};
}
inline Identity server(Rank rank, std::string_view job = "test") {
  return {job_id_of(job), Role::kServer, rank};
}

inline Bytes some_bytes(std::size_t size, unsigned first = 1) {
  Bytes bytes(size);
  std::uint64_t value = (first + 1) * 0x9E3779B97F4A7C15U;
  for (std::size_t i = 0; i < size; i += sizeof value) {
    value = (value ^ value >> 29) * 0xBF58476D1CE4E5B9U;
    std::memcpy(bytes.data() + i, &value, std::min(sizeof value, size - i));
  }
  return bytes;
}

struct Pair {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connector> connector;
  std::unique_ptr<Link> accepted;   // the listener's end
  std::unique_ptr<Link> connected;  // the connector's end
  std::optional<ConnectFailure> failure;
  std::vector<std::string> log;
};

// Both ends by the options given; the connector's address is the listener's.
inline std::unique_ptr<Pair> join(boost::asio::io_context& io, ListenerOptions listening,
                                  ConnectorOptions connecting,
                                  std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  auto pair = std::make_unique<Pair>();
  Pair* const raw = pair.get();
  pair->listener =
      listen(io, listening,
             {.admit = {},
              .accepted = [raw](std::unique_ptr<Link> link) { raw->accepted = std::move(link); },
              .log = [raw](const std::string& line) { raw->log.push_back(line); }});
  if (!connecting.address.is_unix() && connecting.address.port == 0) {
    connecting.address = pair->listener->address();
  }
  pair->connector = connect(
      io, connecting, deadline_in(limit),
      [raw](std::unique_ptr<Link> link) { raw->connected = std::move(link); },
      [raw](const ConnectFailure& failure) { raw->failure = failure; });
  run_until(
      io, [&] { return (raw->accepted && raw->connected) || raw->failure; }, 2 * limit);
  return pair;
}

}  // namespace cohort::network::test
