#include "launch/bootstrap.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <fstream>
#include <utility>

#include "collectives/process_life.h"
#include "core/error.h"

namespace cohort::launch {
namespace {

constexpr int kMeetingLane = 0;

std::string text_of(const Variable& variable, const char* name) {
  const char* value = variable(name);
  return value == nullptr ? "" : value;
}

// The address of this host from which `address` is reached, as the system would choose it. Nothing
// is sent.
std::string host_towards(const network::Address& address) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &found);
      error != 0) {
    throw ConfigError("the meeting point " + address.text() + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    const bool known = ::connect(socket, one->ai_addr, one->ai_addrlen) == 0 &&
                       ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) == 0;
    ::close(socket);
    char host[NI_MAXHOST] = "";
    if (known && ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, host, sizeof host,
                               nullptr, 0, NI_NUMERICHOST) == 0) {
      return host;
    }
  }
  throw PeerError("this host has no way to the meeting point " + address.text() +
                  ": check the address and the network");
}

network::Address meeting_point(const JobOptions& options, const Place& place,
                               const Variable& variable) {
  if (!options.meet.empty()) return network::parse_address(options.meet);
  if (place.master_address.empty() || place.master_port == 0) {
    throw ConfigError(place.source + " started " + std::to_string(place.size) +
                      " processes, but nothing says where they meet: give --meet HOST:PORT, an "
                      "address of process 0's host, or set MASTER_ADDR and MASTER_PORT");
  }
  // torchrun then serves its own store there.
  const bool taken = text_of(variable, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  const int port = place.master_port + (taken && place.master_port < 65535 ? 1 : 0);
  // Of a job of this host alone torchrun may give the host's name, which loopback does better than.
  const bool here_alone = place.local_size == place.size;
  return {.host = here_alone ? "127.0.0.1" : place.master_address,
          .port = static_cast<std::uint16_t>(port)};
}

network::JobId job_of(const JobOptions& options, const Variable& variable,
                      const std::string& otherwise) {
  std::string name = options.job;
  if (name.empty()) name = text_of(variable, "COHORT_JOB");
  if (name.empty()) name = otherwise;
  return network::job_id_of(name);
}

BootstrapPlan plan_of_known_addresses(const JobOptions& options, const Variable& variable) {
  BootstrapPlan plan;
  plan.processes = static_cast<int>(options.addresses.size());
  plan.process = options.process;
  if (plan.process < 0 || plan.process >= plan.processes) {
    throw ConfigError("there are " + std::to_string(plan.processes) +
                      " addresses of processes, so this one must be from 0 to " +
                      std::to_string(plan.processes - 1) + ", not " + std::to_string(plan.process));
  }
  plan.source = "the list of addresses";
  plan.meet = options.addresses.front();
  plan.listen = options.addresses[static_cast<std::size_t>(plan.process)];
  std::string all = "addresses";
  for (const network::Address& address : options.addresses) all += " " + address.text();
  plan.job = job_of(options, variable, all);
  return plan;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void append(Bytes& out, std::span<const std::byte> bytes) {
  const std::uint64_t length = bytes.size();
  const auto head = std::as_bytes(std::span(&length, 1));
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::vector<std::string> unpacked(std::span<const std::byte> bytes, int count) {
  std::vector<std::string> all;
  while (static_cast<int>(all.size()) < count) {
    std::uint64_t length = 0;
    if (bytes.size() < sizeof length) throw PeerError("process 0 sent a table that ends too early");
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes = bytes.subspan(sizeof length);
    if (bytes.size() < length) throw PeerError("process 0 sent a table that ends too early");
    all.push_back(text_of(bytes.first(length)));
    bytes = bytes.subspan(length);
  }
  return all;
}

std::optional<Place> place_of(const JobOptions& options, const Variable& variable) {
  if (options.processes == 0) return detect_place(variable);
  const Place place{
      .source = "the command line", .rank = options.process, .size = options.processes};
  return with_meeting_point(place, variable);
}

}  // namespace

BootstrapPlan plan_bootstrap(const JobOptions& options, const Variable& variable) {
  if (!options.addresses.empty()) return plan_of_known_addresses(options, variable);
  BootstrapPlan plan;
  const std::optional<Place> place = place_of(options, variable);
  if (!place) {
    if (options.workers <= 1) return plan;
    const std::string workers = std::to_string(options.workers);
    throw ConfigError(
        "--engine tcp with --workers " + workers +
        " needs several processes, and this one was started alone: use `cohort launch "
        "--engine tcp -n " +
        workers + " --`, or start each with RANK, WORLD_SIZE, MASTER_ADDR and " +
        "MASTER_PORT set, or use --engine threads");
  }
  plan.processes = place->size;
  plan.process = place->rank;
  plan.source = place->source;
  if (plan.processes == 1) return plan;
  plan.meet = meeting_point(options, *place, variable);
  const bool local = network::is_of_this_host_alone(plan.meet);
  if (local && place->local_size > 0 && place->local_size < place->size) {
    throw ConfigError("processes of several hosts cannot meet at " + plan.meet.text() +
                      ", which is this host's own loopback: give --meet HOST:PORT with an address "
                      "of process 0's host that the others reach");
  }
  plan.listen = plan.meet;
  if (plan.process != 0) {
    plan.listen = {.host = local ? "127.0.0.1" : host_towards(plan.meet), .port = 0};
  }
  plan.job = job_of(options, variable,
                    "meeting " + plan.meet.text() + " " + text_of(variable, "TORCHELASTIC_RUN_ID") +
                        " " + text_of(variable, "TORCHELASTIC_RESTART_COUNT"));
  return plan;
}

Bootstrap::Bootstrap(transport::TcpNode& node, const BootstrapPlan& plan,
                     const std::string& agreement, const std::string& introduction,
                     const std::function<void(const std::string&)>& note, Deadline deadline) {
  transport::TcpLane lane;
  lane.number = kMeetingLane;
  lane.star = true;
  lane.agreement = agreement;
  lane.introduction = introduction;
  for (int process = 0; process < plan.processes; ++process) {
    lane.members.push_back(process);
    lane.addresses.push_back(plan.meet);
    lane.names.push_back("process " + std::to_string(process));
  }
  const std::string where =
      " of " + std::to_string(plan.processes) + " to come to " + plan.meet.text();
  if (note) {
    lane.waiting = [&](const std::string& whom) {
      note("process " + std::to_string(plan.process) + " waits for " + whom + where);
    };
  }
  try {
    star_ = node.connect(lane, deadline);
  } catch (const PeerError& error) {
    throw PeerError(std::string(error.what()) + " (" + plan.source + " counts " +
                    std::to_string(plan.processes) + " processes, which meet at " +
                    plan.meet.text() + ")");
  } catch (const ConfigError& error) {
    throw ConfigError(std::string(error.what()) +
                      "; start all with the same WORLD_SIZE and --workers, each with a RANK of its "
                      "own, and each job with a MASTER_PORT of its own");
  }
  std::vector<std::string> said(static_cast<std::size_t>(star_->size()));
  said[star_->rank()] = introduction;
  for (Rank other = 1; star_->rank() == 0 && other < star_->size(); ++other) {
    said[other] = star_->introduction(other);
  }
  introductions_ = tell_all(said, deadline);
}

std::vector<std::string> Bootstrap::exchange(const std::string& own, Deadline deadline) {
  std::vector<std::string> said(static_cast<std::size_t>(star_->size()));
  said[star_->rank()] = own;
  if (star_->rank() != 0) star_->send(0, round_, std::as_bytes(std::span(own)), deadline);
  for (Rank from = 1; star_->rank() == 0 && from < star_->size(); ++from) {
    said[from] = text_of(star_->receive(from, round_, deadline).payload);
  }
  return tell_all(said, deadline);
}

// What process 0 has heard of all.
std::vector<std::string> Bootstrap::tell_all(const std::vector<std::string>& said,
                                             Deadline deadline) {
  const transport::Tag tag = round_++;
  if (star_->rank() != 0) {
    return unpacked(star_->receive(0, tag, deadline).payload, star_->size());
  }
  Bytes table;
  for (const std::string& one : said) append(table, std::as_bytes(std::span(one)));
  for (Rank to = 1; to < star_->size(); ++to) star_->send(to, tag, table, deadline);
  return said;
}

std::string host_name(const Variable& variable) {
  if (std::string given = text_of(variable, "COHORT_HOST"); !given.empty()) return given;
  char name[HOST_NAME_MAX + 1] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "a host without a name";
}

std::string host_identity(const Variable& variable) {
  if (std::string given = text_of(variable, "COHORT_HOST"); !given.empty()) return given;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::string identity = host_name(variable) + " " + boot + " " + std::to_string(::geteuid()) +
                         " " + std::to_string(collectives::process_number_space());
  for (const char* path : {"/proc/self/ns/net", "/dev/shm"}) {
    struct stat status {};
    if (::stat(path, &status) != 0) continue;
    identity += " " + std::to_string(status.st_dev) + "." + std::to_string(status.st_ino);
  }
  return identity;
}

}  // namespace cohort::launch
