#include "dialects/paddle_cluster.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "dialects/host_list.h"

namespace cohort::dialects {
namespace {

constexpr int kUsualPort = 6174;
constexpr int kMax = 1'000'000;

// A variable that was found, under the first of several names that is set.
struct Found {
  std::string name;
  std::string value;  // empty: none of them
};

Found first_of(const Variables& variables, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = variables.find(name);
    if (found != variables.end() && !found->second.empty()) return {name, found->second};
  }
  return {names.front(), ""};
}

int number_of(const Found& found, int low, int high = kMax) {
  int number = 0;
  const char* end = found.value.data() + found.value.size();
  const auto parsed = std::from_chars(found.value.data(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end || number < low || number > high) {
    throw ConfigError(fmt::format("{} must be a number from {} to {}, it is '{}'", found.name, low,
                                  high, found.value));
  }
  return number;
}

int port_in(const Variables& variables) {
  const Found port = first_of(variables, {"PADDLE_PSERVER_PORT"});
  return port.value.empty() ? kUsualPort : number_of(port, 1, 65535);
}

std::string with_port(const std::string& host, int port) {
  if (host.find(':') == std::string::npos) return fmt::format("{}:{}", host, port);
  // An address of IPv6 has several colons; one that is in brackets may have its port already.
  if (host.front() == '[') return host.back() == ']' ? fmt::format("{}:{}", host, port) : host;
  const bool several = host.find(':') != host.rfind(':');
  return several ? fmt::format("[{}]:{}", host, port) : host;
}

// The addresses in PADDLE_<kind>_ENDPOINTS, or in PADDLE_<kind>_IPS with the common port.
std::vector<std::string> addresses_of(const std::string& kind, const Variables& variables) {
  const Found endpoints = first_of(variables, {"PADDLE_" + kind + "_ENDPOINTS"});
  if (!endpoints.value.empty()) return parse_hosts(endpoints.name, endpoints.value);
  const Found hosts = first_of(variables, {"PADDLE_" + kind + "_IPS"});
  if (hosts.value.empty()) return {};
  std::vector<std::string> addresses;
  for (const std::string& host : split(hosts.value, ',')) {
    const std::string address = with_port(host, port_in(variables));
    if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) {
      throw ConfigError(
          fmt::format("{0} has {1} twice, and the port is the same for all: give each its own with "
                      "PADDLE_{2}_ENDPOINTS={1}:{3},{1}:{4}, or name other addresses of the host",
                      hosts.name, host, kind, port_in(variables), port_in(variables) + 1));
    }
    addresses.push_back(address);
  }
  return parse_hosts(hosts.name, join(addresses, ","));
}

std::string own_address(const Variables& variables) {
  const Found endpoint = first_of(variables, {"PADDLE_CURRENT_ENDPOINT"});
  if (!endpoint.value.empty()) return endpoint.value;
  const Found host = first_of(variables, {"PADDLE_CURRENT_IP", "POD_IP"});
  return host.value.empty() ? "" : with_port(host.value, port_in(variables));
}

// Which of the servers listens at this process's address.
int own_server(const std::vector<std::string>& servers, const Variables& variables) {
  const std::string own = own_address(variables);
  if (own.empty()) {
    if (servers.size() == 1) return 0;
    throw ConfigError("a PSERVER needs PADDLE_CURRENT_IP or PADDLE_CURRENT_ENDPOINT: which of " +
                      join(servers, ", ") + " it is");
  }
  const auto found = std::find(servers.begin(), servers.end(), own);
  if (found == servers.end()) {
    throw ConfigError("this PSERVER is " + own + " by PADDLE_CURRENT_IP or " +
                      "PADDLE_CURRENT_ENDPOINT, but the servers are " + join(servers, ", "));
  }
  return static_cast<int>(found - servers.begin());
}

bool says_server(const Variables& variables) {
  const Found role = first_of(variables, {"PADDLE_TRAINING_ROLE", "TRAINING_ROLE"});
  if (role.value.empty() || role.value == "TRAINER") return false;
  if (role.value == "PSERVER") return true;
  throw ConfigError(role.name + " must be PSERVER or TRAINER, it is '" + role.value + "'");
}

int trainers_in(const Variables& variables, int otherwise) {
  const Found count = first_of(variables, {"PADDLE_TRAINERS_NUM", "PADDLE_TRAINERS"});
  return count.value.empty() ? otherwise : number_of(count, 1);
}

int own_trainer(const Variables& variables, int trainers) {
  const Found id = first_of(variables, {"PADDLE_TRAINER_ID"});
  if (id.value.empty()) {
    if (trainers == 1) return 0;
    throw ConfigError(
        fmt::format("each TRAINER needs its PADDLE_TRAINER_ID, from 0 to {}", trainers - 1));
  }
  return number_of(id, 0, trainers - 1);
}

void join_servers(PaddleCluster& cluster, const Variables& variables) {
  cluster.servers = addresses_of("PSERVER", variables);
  if (cluster.servers.empty()) {
    throw ConfigError(
        "--update_method pserver needs the servers: PADDLE_PSERVER_IPS=192.168.0.100,192.168.0.101 "
        "with PADDLE_PSERVER_PORT, or PADDLE_PSERVER_ENDPOINTS=host:port,host:port");
  }
  cluster.trainers = trainers_in(variables, 0);
  if (cluster.trainers == 0) {
    throw ConfigError(
        "--update_method pserver needs the number of trainers: PADDLE_TRAINERS or "
        "PADDLE_TRAINERS_NUM");
  }
  cluster.is_server = says_server(variables);
  cluster.index = cluster.is_server ? own_server(cluster.servers, variables)
                                    : own_trainer(variables, cluster.trainers);
}

void join_collective(PaddleCluster& cluster, const Variables& variables) {
  if (says_server(variables)) {
    throw ConfigError("PADDLE_TRAINING_ROLE is PSERVER, but --update_method nccl2 has no servers");
  }
  cluster.trainers_at = addresses_of("TRAINER", variables);
  const auto named = static_cast<int>(cluster.trainers_at.size());
  cluster.trainers = trainers_in(variables, std::max(1, named));
  if (cluster.trainers == 1 && named <= 1) return;
  if (named != cluster.trainers) {
    throw ConfigError(fmt::format(
        "--update_method nccl2: {} trainers by PADDLE_TRAINERS or PADDLE_TRAINERS_NUM, but {} "
        "addresses in PADDLE_TRAINER_IPS or PADDLE_TRAINER_ENDPOINTS",
        cluster.trainers, named));
  }
  cluster.index = own_trainer(variables, cluster.trainers);
}

}  // namespace

int number_in(const Variables& variables, const std::string& name, int low, int otherwise) {
  const Found found = first_of(variables, {name});
  return found.value.empty() ? otherwise : number_of(found, low);
}

PaddleCluster find_paddle_cluster(const std::string& update_method, const Variables& variables) {
  const auto is_set = [&](const std::vector<std::string>& names) {
    return !first_of(variables, names).value.empty();
  };
  PaddleCluster cluster;
  if (update_method == "pserver") {
    // As the published NCCL2 example is written.
    const bool collective = !is_set({"PADDLE_PSERVER_ENDPOINTS", "PADDLE_PSERVER_IPS"}) &&
                            is_set({"PADDLE_TRAINER_ENDPOINTS", "PADDLE_TRAINER_IPS"});
    cluster.method = collective ? PaddleMethod::kCollective : PaddleMethod::kServers;
    if (collective) {
      cluster.notes.emplace_back(
          "PADDLE_TRAINER_IPS without PADDLE_PSERVER_IPS: taken as --update_method nccl2");
    }
  } else if (update_method == "nccl2") {
    cluster.method = PaddleMethod::kCollective;
  } else if (update_method == "local") {
    if (says_server(variables)) {
      throw ConfigError("PADDLE_TRAINING_ROLE is PSERVER, but --update_method is local");
    }
    if (trainers_in(variables, 1) > 1) {
      cluster.notes.emplace_back(
          "--update_method local: this process trains alone, whatever PADDLE_TRAINERS says");
    }
    return cluster;
  } else {
    const std::vector<std::string> known = {"local", "pserver", "nccl2"};
    throw ConfigError(unknown_name("--update_method", update_method, known));
  }
  cluster.method == PaddleMethod::kServers ? join_servers(cluster, variables)
                                           : join_collective(cluster, variables);
  return cluster;
}

}  // namespace cohort::dialects
