// How processes of one host that know only a common key find each other, without a network: the
// first leaves a notice in a folder that is this user's alone.
//
// A notice tells who left it. One whose process has ended is stale and counts for nothing; the next
// to leave a notice takes all stale ones away, with the memory they speak of. Changes to the folder
// are made under a lock, so that of two jobs with the same key the second finds the first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/clock.h"
#include "launch/environment.h"

namespace cohort {

struct Notice {
  std::string memory;  // the name of what the processes share
  int processes = 0;   // of the job, and
  int workers = 0;     // its ranks, as the writer counts them
  std::int64_t pid = 0;
  std::uint64_t start = 0;  // when process `pid` began, as the system counts
};

// The folder's path: XDG_RUNTIME_DIR where that is a folder of this user with mode 0700, otherwise
// `fallback`, made when it is missing. Throws ConfigError when the fallback is a link, or not a
// folder, or another user's, or open to others.
std::string private_folder(const Variable& variable, const std::string& fallback);
std::string fallback_folder();  // for that: /tmp/cohort-UID

class Rendezvous {
 public:
  // `key`: any text that all processes of the job know and no other job of this user and host has
  // at the same time. Process numbers must mean the same to all.
  Rendezvous(std::string folder, const std::string& key);
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  ~Rendezvous() { withdraw(); }

  // Leaves a notice of this process, which says the first three fields. Throws ConfigError when a
  // living process has left one for the same key, FileError when it cannot be written.
  void publish(Notice notice, Deadline deadline);

  // Takes this object's notice away, if there is one. Never throws.
  void withdraw() noexcept;

  // What a living process left for this key; nothing when there is none, or what is there is stale
  // or not a notice.
  std::optional<Notice> look() const;

  const std::string& path() const { return path_; }

 private:
  void sweep() const;

  std::string folder_;
  std::string prefix_;  // of the files of processes whose numbers mean the same
  std::string path_;
  std::string published_;  // the text of the own notice, while it is there
};

}  // namespace cohort
