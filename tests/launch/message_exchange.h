// What the ranks of a job do with their messages, for the tests of all engines. Each body returns
// what it found wrong, or "ok".
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "launch/job.h"

namespace cohort::launch {

inline constexpr std::array<transport::Tag, 2> kExchangeTags{5, transport::kFirstReservedTag - 1};
inline constexpr std::array<std::size_t, 4> kExchangeSizes{0, 1, 100'000, 5'000'000};
// The largest go with the first tag alone: that is enough to fill memory with.
inline bool is_exchanged(std::size_t size, transport::Tag tag) {
  return size < kExchangeSizes.back() || tag == kExchangeTags.front();
}

// Different for every sender, receiver and tag: a long period of noise, from a place of their own.
// Copied in blocks, since a sanitizer makes loops over bytes slow.
inline Bytes exchange_pattern(std::size_t length, Rank from, Rank to, transport::Tag tag) {
  static const std::vector<std::byte> noise = [] {
    std::vector<std::byte> bytes(65521);
    std::uint32_t state = 1;
    for (std::byte& byte : bytes) {
      state = state * 1664525U + 1013904223U;
      byte = static_cast<std::byte>(state >> 24);
    }
    return bytes;
  }();
  Bytes bytes(length);
  std::size_t begin = (static_cast<std::size_t>(from) * 7919 +
                       static_cast<std::size_t>(to) * 104729 + std::size_t{tag} * 31) %
                      noise.size();
  for (std::size_t done = 0; done < length;) {
    const std::size_t count = std::min(length - done, noise.size() - begin);
    std::memcpy(bytes.data() + done, noise.data() + begin, count);
    done += count;
    begin = 0;
  }
  return bytes;
}

inline bool is_pattern(const Bytes& bytes, std::size_t length, Rank from, Rank to,
                       transport::Tag tag) {
  return bytes.size() == length &&
         (length == 0 ||
          std::memcmp(bytes.data(), exchange_pattern(length, from, to, tag).data(), length) == 0);
}

// Calls `body` for each member on a thread of its own; "ok", or what went wrong with whom.
template <class Body>
std::string on_all_members(std::vector<collectives::Membership>& members, Body&& body) {
  std::vector<std::string> found(members.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        found[i] = body(members[i]);
      } catch (const std::exception& error) {
        found[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::string text;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (found[i] != "ok") text += std::to_string(members[i].rank) + ": " + found[i] + "\n";
  }
  return text.empty() ? "ok" : text;
}

// Every rank sends every rank messages of all sizes with two tags before it receives any, then
// takes those with the last tag first.
inline std::string exchange_with_all(const collectives::Membership& member) {
  const Deadline deadline = deadline_in(std::chrono::seconds(60));
  transport::Transport& messages = *member.messages;
  if (messages.rank() != member.rank || messages.size() != member.size) return "a wrong rank";
  std::uint64_t bytes = 0;
  for (const std::size_t size : kExchangeSizes) {
    for (const transport::Tag tag : kExchangeTags) {
      if (!is_exchanged(size, tag)) continue;
      for (Rank to = 0; to < member.size; ++to) {
        messages.send(to, tag, exchange_pattern(size, member.rank, to, tag), deadline);
        if (to != member.rank) bytes += size;
      }
    }
  }
  for (auto tag = kExchangeTags.rbegin(); tag != kExchangeTags.rend(); ++tag) {
    for (Rank from = 0; from < member.size; ++from) {
      for (const std::size_t size : kExchangeSizes) {
        if (!is_exchanged(size, *tag)) continue;
        const transport::Message message = messages.receive(from, *tag, deadline);
        if (!is_pattern(message.payload, size, from, member.rank, *tag)) {
          return std::to_string(size) + " bytes of rank " + std::to_string(from) + " are wrong";
        }
      }
    }
  }
  const Traffic traffic = member.message_traffic();
  return traffic.sent == bytes && traffic.received == bytes ? "ok" : "a wrong count of bytes";
}

// Rank 1 closes: all others learn of it, cannot send to it, and go on with each other.
inline std::string one_closes(const collectives::Membership& member) {
  const Deadline deadline = deadline_in(std::chrono::seconds(20));
  transport::Transport& messages = *member.messages;
  if (member.rank == 1) {
    for (Rank to = 0; to < member.size; ++to) messages.send(to, 1, {}, deadline);
    messages.close();
    return "ok";
  }
  messages.receive(1, 1, deadline);  // what it had sent comes first
  for (const bool sends : {false, true}) {
    try {
      if (sends) messages.send(1, 1, {}, deadline);
      if (!sends) messages.receive(1, 1, deadline);
      return "rank 1 is still there";
    } catch (const PeerError& error) {
      if (std::strstr(error.what(), "rank 1") == nullptr) return error.what();
    }
  }
  for (Rank to = 0; to < member.size; ++to) {
    if (to != 1) messages.send(to, 2, exchange_pattern(1000, member.rank, to, 2), deadline);
  }
  for (Rank from = 0; from < member.size; ++from) {
    if (from == 1) continue;
    if (!is_pattern(messages.receive(from, 2, deadline).payload, 1000, from, member.rank, 2)) {
      return "a wrong message";
    }
  }
  return "ok";
}

}  // namespace cohort::launch
