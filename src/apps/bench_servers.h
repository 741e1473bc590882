// Processes of parameter servers and workers for a benchmark: forked, told apart by a pipe each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "network/address.h"
#include "network/credentials.h"
#include "network/identity.h"
#include "serving/parameter_client.h"

namespace cohort::apps {

// A child process and the pipe through which it tells what it has found.
class BenchProcess {
 public:
  using Tell = std::function<void(const std::string& line)>;

  // `body` runs in the child.
  explicit BenchProcess(const std::function<void(const Tell&)>& body);
  BenchProcess(const BenchProcess&) = delete;
  BenchProcess& operator=(const BenchProcess&) = delete;
  ~BenchProcess();  // waits for its end

  // The next line it wrote. Throws RunError when it ended instead.
  std::string line();

 private:
  int process_ = -1;
  int pipe_ = -1;
};

// Where processes wait for each other, so that none is measured while another still prepares.
class BenchGate {
 public:
  BenchGate();
  BenchGate(const BenchGate&) = delete;
  BenchGate& operator=(const BenchGate&) = delete;
  ~BenchGate();

  // Once in each process: returns when all that were forked since the gate was made, and their
  // parent, have called it or ended.
  void pass();

 private:
  int ends_[2] = {-1, -1};
};

// How workers and servers reach each other.
struct BenchRoute {
  network::Address listen;
  network::Credentials credentials = {};
  std::string folder = {};  // for Unix sockets beside a port
  bool shared_memory = false;
};

inline const std::vector<std::string> kBenchTransports = {"tcp", "tls", "unix", "shared-memory"};
// Throws ConfigError naming the transports.
BenchRoute bench_route(const std::string& transport);

// A server of `job`; `address` becomes where it listens.
std::unique_ptr<BenchProcess> start_bench_server(const BenchRoute& route, const network::JobId& job,
                                                 int server, network::Address& address);

// For a worker of a model of `elements` values, plain SGD, without rounds.
serving::ParameterClientOptions bench_client_options(const BenchRoute& route,
                                                     const network::JobId& job,
                                                     const std::vector<network::Address>& servers,
                                                     std::int64_t elements);
inline constexpr float kBenchRate = 0.5F;

}  // namespace cohort::apps
