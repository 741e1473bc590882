// Push-pull of float parameters over one plain gRPC stream between two processes of this machine:
// the rival of `cohort bench push-pull`. The server holds the parameters and applies p -= lr * g.
//
// gRPC gets its best here: one thread a side that drives one completion queue, large frames and
// flow-control windows (--tuning plain leaves those out), no encryption unless --transport tls asks
// for gRPC's own, with a certificate made for the occasion. Two encodings are
// measured: `proto`, a message with a bytes field, as the tutorials have it; and `raw`, gRPC's own
// byte buffers, whose slices point into the parameters, so that nothing is copied before the
// socket.
//
// Prints one JSON object a line. GB/s are the bytes of one way over the seconds of the whole.
#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "push_pull.pb.h"

namespace {

using cohort::rivals::Block;
using Clock = std::chrono::steady_clock;

constexpr float kLearningRate = 0.5F;
constexpr int kTimeoutS = 60;
constexpr int kWarmUps = 2;
constexpr size_t kRoundTripValues = 1024;

// A key and its own certificate, as PEM. Both processes have them from before the fork.
struct Credential {
  std::string key, certificate;
};

constexpr char kHostName[] = "localhost";

template <class Write, class Object>
std::string pem_of(const Write& write, Object* object) {
  const std::unique_ptr<BIO, int (*)(BIO*)> memory(BIO_new(BIO_s_mem()), BIO_free);
  char* text = nullptr;
  if (write(memory.get(), object) != 1) throw std::runtime_error("no PEM");
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<size_t>(size)};
}

Credential make_credential() {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86400);
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(kHostName), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  X509_set_pubkey(certificate.get(), key.get());
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) {
    throw std::runtime_error("no certificate");
  }
  const auto write_key = [](BIO* to, EVP_PKEY* from) {
    return PEM_write_bio_PrivateKey(to, from, nullptr, nullptr, 0, nullptr, nullptr);
  };
  return {pem_of(write_key, key.get()), pem_of(PEM_write_bio_X509, certificate.get())};
}

struct Settings {
  double megabytes = 100;
  size_t chunk_kb = 1024;
  int repetitions = 9;
  int round_trips = 2000;
  std::string transport = "tcp";
  std::string encoding = "both";
  std::string tuning = "tuned";
  Credential tls = {};  // for transport tls
  size_t parameters() const { return static_cast<size_t>(megabytes * 1e6 / sizeof(float)); }
  size_t chunk_values() const { return chunk_kb * 1024 / sizeof(float); }
};

struct Header {
  uint64_t kind, first, count;
};

struct Piece {
  Header header;
  const float* values;  // null: none travel
};

void* next_event(grpc::CompletionQueue* queue, bool* ok) {
  void* tag = nullptr;
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(kTimeoutS);
  if (queue->AsyncNext(&tag, ok, deadline) == grpc::CompletionQueue::GOT_EVENT) return tag;
  throw std::runtime_error("nothing happened for " + std::to_string(kTimeoutS) + " s");
}

// The messages of one stream, on the completion queue's only thread. Sent values must stay until
// the other side has answered.
template <class Stream>
class Lane {
 public:
  Lane(Stream* stream, grpc::CompletionQueue* queue, bool raw)
      : stream_(stream), queue_(queue), raw_(raw) {
    stream_->Read(&incoming_, &incoming_);
  }

  void send(const Piece& piece) {
    outbox_.push_back(piece);
    if (outbox_.size() == 1) start_write();
  }

  // The next message, false when the other side is done. Values that came as slices are gathered
  // at landing(header); those of a parsed message lie in it until the next call.
  template <class Landing>
  bool receive(const Landing& landing, Piece* piece) {
    for (;;) {
      bool ok = false;
      void* const tag = next_event(queue_, &ok);
      if (tag == &incoming_) {
        if (!ok) return false;
        raw_ ? gather(landing, piece) : parse(piece);
        stream_->Read(&incoming_, &incoming_);
        return true;
      }
      if (!ok) return false;
      outbox_.pop_front();
      if (!outbox_.empty()) start_write();
    }
  }

 private:
  void start_write() {
    const auto& [header, values] = outbox_.front();
    const size_t bytes = values ? header.count * sizeof(float) : 0;
    grpc::ByteBuffer buffer;
    if (raw_) {
      const grpc::Slice slices[] = {grpc::Slice(&header, sizeof header),
                                    grpc::Slice(values, bytes, grpc::Slice::STATIC_SLICE)};
      buffer = grpc::ByteBuffer(slices, values ? 2 : 1);
    } else {
      outgoing_.set_kind(static_cast<Block::Kind>(header.kind));
      outgoing_.set_first(header.first);
      outgoing_.set_count(header.count);
      outgoing_.set_values(values, bytes);
      bool own = false;
      if (!grpc::SerializationTraits<Block>::Serialize(outgoing_, &buffer, &own).ok()) {
        throw std::runtime_error("a message could not be serialised");
      }
    }
    stream_->Write(buffer, this);
  }

  template <class Landing>
  void gather(const Landing& landing, Piece* piece) {
    const size_t bytes = incoming_.Length() - sizeof(Header);
    grpc::ProtoBufferReader slices(&incoming_);
    google::protobuf::io::CodedInputStream in(&slices);
    bool fine = in.ReadRaw(&piece->header, sizeof(Header));
    if (fine && bytes > 0) {
      float* values = landing(piece->header);
      fine = in.ReadRaw(values, static_cast<int>(bytes));
      piece->values = values;
    }
    if (!fine) throw std::runtime_error("a message could not be read");
  }

  void parse(Piece* piece) {
    if (!grpc::SerializationTraits<Block>::Deserialize(&incoming_, &parsed_).ok()) {
      throw std::runtime_error("a message could not be parsed");
    }
    piece->header = {static_cast<uint64_t>(parsed_.kind()), parsed_.first(), parsed_.count()};
    piece->values = reinterpret_cast<const float*>(parsed_.values().data());
  }

  Stream* stream_;
  grpc::CompletionQueue* queue_;
  bool raw_;
  grpc::ByteBuffer incoming_;
  std::deque<Piece> outbox_;  // the first is being written
  Block outgoing_, parsed_;   // reused, so that their memory is
};

// `plain` is what gRPC does unasked, but for the limit on messages. `tuned` is what was fastest
// here: one frame a message, a window that never closes, and no probing for that window, whose
// pings stall a stream that is full both ways.
std::vector<std::pair<std::string, int>> options_of(const Settings& settings) {
  std::vector<std::pair<std::string, int>> options = {{GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1},
                                                      {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1}};
  if (settings.tuning == "plain") return options;
  options.emplace_back(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (1 << 24) - 1);
  options.emplace_back(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 20);
  options.emplace_back(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  options.emplace_back(GRPC_ARG_ENABLE_RETRIES, 0);
  return options;
}

std::shared_ptr<grpc::Channel> connect(const Settings& settings, const std::string& address) {
  grpc::ChannelArguments arguments;
  for (const auto& [name, value] : options_of(settings)) arguments.SetInt(name, value);
  auto credentials = grpc::InsecureChannelCredentials();
  if (settings.transport == "tls") {
    arguments.SetSslTargetNameOverride(kHostName);
    credentials = grpc::SslCredentials({settings.tls.certificate, "", ""});
  }
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

// Serves one stream at `address` and writes the port it took to `port_pipe`.
void serve(const Settings& settings, const std::string& address, int port_pipe, bool raw) {
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  int port = 0;
  auto credentials = grpc::InsecureServerCredentials();
  if (settings.transport == "tls") {
    grpc::SslServerCredentialsOptions own;
    own.pem_key_cert_pairs.push_back({settings.tls.key, settings.tls.certificate});
    credentials = grpc::SslServerCredentials(own);
  }
  builder.AddListeningPort(address, credentials, &port);
  builder.RegisterAsyncGenericService(&service);
  for (const auto& [name, value] : options_of(settings)) builder.AddChannelArgument(name, value);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server || write(port_pipe, &port, sizeof port) != sizeof port) {
    throw std::runtime_error("the server could not listen at " + address);
  }
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream(&context);
  service.RequestCall(&context, &stream, queue.get(), queue.get(), &context);
  bool called = false;
  next_event(queue.get(), &called);
  if (!called) throw std::runtime_error("no client called");

  std::vector<float> parameters(settings.parameters(), 0.0F);
  std::vector<float> gradient(std::max(settings.chunk_values(), kRoundTripValues));
  // Every chunk lands in the same small buffer, which so stays in the cache.
  const auto landing = [&](const Header&) { return gradient.data(); };
  Lane lane(&stream, queue.get(), raw);
  Piece piece{};
  while (lane.receive(landing, &piece)) {
    auto [kind, first, count] = piece.header;
    if (kind == Block::PULL) {
      for (; count > 0; first += settings.chunk_values()) {
        const uint64_t part = std::min<uint64_t>(count, settings.chunk_values());
        lane.send({{kind, first, part}, &parameters[first]});
        count -= part;
      }
      continue;
    }
    float* const target = &parameters.at(first);
    for (uint64_t i = 0; i < count; ++i) target[i] -= kLearningRate * piece.values[i];
    if (kind == Block::PUSH_PULL) {
      lane.send({piece.header, &parameters[first]});
    } else if (first + count == parameters.size()) {
      lane.send({{kind, 0, 0}, nullptr});
    }
  }
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double quantile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(fraction * static_cast<double>(values.size() - 1))];
}

class Client {
 public:
  Client(const Settings& settings, const std::string& address, bool raw)
      : settings_(settings),
        raw_(raw),
        stub_(connect(settings, address)),
        stream_(stub_.PrepareCall(&context_, "/cohort.rivals.PushPull/Stream", &queue_)),
        gradient_(settings.parameters()),
        parameters_(settings.parameters(), 0.0F) {
    // Small multiples of a power of two: their sums are exact, so equality is the test.
    for (size_t i = 0; i < gradient_.size(); ++i) {
      gradient_[i] = static_cast<float>(i % 1021) * 0.25F;
    }
    stream_->StartCall(this);
    bool called = false;
    next_event(&queue_, &called);
    if (!called) throw std::runtime_error("the server could not be called");
    lane_ = std::make_unique<Lane<Stream>>(stream_.get(), &queue_, raw);
  }

  void stream() {
    std::vector<double> totals;
    for (int r = -kWarmUps; r < settings_.repetitions; ++r) {
      const auto begin = Clock::now();
      push(Block::PUSH_PULL);
      take(gradient_.size());
      if (r >= 0) totals.push_back(seconds_since(begin));
    }
    report("stream", {{"gb_per_s", rate(totals, 0.5)}, {"best_gb_per_s", rate(totals, 0)}});
  }

  void push_then_pull() {
    std::vector<double> totals, pushes, pulls;
    for (int r = -kWarmUps; r < settings_.repetitions; ++r) {
      const auto begin = Clock::now();
      push(Block::PUSH);
      take(0);
      const double pushed = seconds_since(begin);
      lane_->send({{Block::PULL, 0, gradient_.size()}, nullptr});
      take(gradient_.size());
      const double total = seconds_since(begin);
      if (r < 0) continue;
      totals.push_back(total), pushes.push_back(pushed), pulls.push_back(total - pushed);
    }
    report("push-then-pull", {{"gb_per_s", rate(totals, 0.5)},
                              {"best_gb_per_s", rate(totals, 0)},
                              {"push_gb_per_s", rate(pushes, 0.5)},
                              {"pull_gb_per_s", rate(pulls, 0.5)}});
  }

  void round_trips() {
    const size_t count = std::min(kRoundTripValues, gradient_.size());
    std::vector<double> trips;
    for (int i = -settings_.round_trips / 10; i < settings_.round_trips; ++i) {
      const auto begin = Clock::now();
      lane_->send({{Block::PUSH_PULL, 0, count}, gradient_.data()});
      take(count);
      if (i >= 0) trips.push_back(seconds_since(begin) * 1e6);
      ++small_pushes_;
    }
    report("round-trip", {{"bytes", count * sizeof(float)},
                          {"median_us", quantile(trips, 0.5)},
                          {"p90_us", quantile(trips, 0.9)}});
  }

 private:
  using Stream = grpc::GenericClientAsyncReaderWriter;

  // Queues the gradient. One write is under way at a time, while what comes back is read.
  void push(Block::Kind kind) {
    for (size_t first = 0; first < gradient_.size(); first += settings_.chunk_values()) {
      const size_t count = std::min(settings_.chunk_values(), gradient_.size() - first);
      lane_->send({{static_cast<uint64_t>(kind), first, count}, &gradient_[first]});
    }
    ++pushes_;
  }

  // Puts `wanted` parameters where they belong; a confirmation where none is wanted.
  void take(size_t wanted) {
    const auto landing = [&](const Header& header) { return &parameters_.at(header.first); };
    Piece piece{};
    do {
      if (!lane_->receive(landing, &piece)) throw std::runtime_error("the server went away");
      const auto& [kind, first, count] = piece.header;
      if (count > wanted) throw std::runtime_error("the server sent more than was asked for");
      if (!raw_) std::memcpy(&parameters_.at(first), piece.values, count * sizeof(float));
      wanted -= count;
    } while (wanted > 0);
  }

  double rate(const std::vector<double>& seconds, double fraction) const {
    return settings_.megabytes * 1e-3 / quantile(seconds, fraction);
  }

  bool right() const {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const int times = pushes_ + (i < kRoundTripValues ? small_pushes_ : 0);
      if (parameters_[i] != -kLearningRate * gradient_[i] * static_cast<float>(times)) return false;
    }
    return true;
  }

  void report(const char* mode, const std::vector<std::pair<const char*, double>>& figures) const {
    std::printf(
        "{\"peer\": \"grpc\", \"version\": \"%s\", \"transport\": \"%s\", \"encoding\": \"%s\", "
        "\"tuning\": \"%s\", \"mode\": \"%s\", \"megabytes\": %g, \"chunk_kb\": %zu, \"correct\": "
        "%s",
        grpc::Version().c_str(), settings_.transport.c_str(), raw_ ? "raw" : "proto",
        settings_.tuning.c_str(), mode, settings_.megabytes, settings_.chunk_kb,
        right() ? "true" : "false");
    for (const auto& [name, value] : figures) std::printf(", \"%s\": %.4g", name, value);
    std::printf("}\n");
    std::fflush(stdout);
    if (!right()) throw std::runtime_error("the parameters that came back are wrong");
  }

  const Settings& settings_;
  bool raw_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Lane<Stream>> lane_;
  std::vector<float> gradient_, parameters_;
  int pushes_ = 0, small_pushes_ = 0;
};

// Runs `work` in a process of its own, which ends with this one. gRPC does not survive a fork, so
// the parent never touches it.
template <class Work>
pid_t start(const Work& work) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    work();
    std::fflush(stdout);
    _exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grpc_push_pull: %s\n", error.what());
    _exit(1);
  }
}

// One server and one client with this encoding; false when the client failed.
bool compare(const Settings& settings, const std::string& folder, bool raw) {
  const bool unix_socket = settings.transport == "unix";
  const std::string address = unix_socket ? "unix:" + folder + "/server" : "127.0.0.1:0";
  int port_pipe[2];
  if (pipe(port_pipe) != 0) throw std::runtime_error("pipe failed");
  const pid_t server = start([&] { serve(settings, address, port_pipe[1], raw); });
  close(port_pipe[1]);
  int port = 0;
  const bool listening = read(port_pipe[0], &port, sizeof port) == sizeof port;
  close(port_pipe[0]);
  int status = 1;
  if (listening) {
    const pid_t client = start([&] {
      Client peer(settings, unix_socket ? address : "127.0.0.1:" + std::to_string(port), raw);
      peer.stream();
      peer.push_then_pull();
      peer.round_trips();
    });
    waitpid(client, &status, 0);
  }
  kill(server, SIGKILL);  // what it was for is done
  waitpid(server, nullptr, 0);
  return status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Push-pull of parameters over a plain gRPC stream"};
  app.option_defaults()->always_capture_default();
  app.add_option("--megabytes", settings.megabytes, "millions of bytes of parameters")
      ->check(CLI::Range(0.1, 4000.0));
  app.add_option("--chunk-kb", settings.chunk_kb, "KiB of values in a message")
      ->check(CLI::Range(4, 65536));
  app.add_option("--repetitions", settings.repetitions, "measured, after two warm-ups")
      ->check(CLI::Range(1, 1000));
  app.add_option("--round-trips", settings.round_trips, "push-pulls of 4 KiB")
      ->check(CLI::Range(10, 10000));
  app.add_option("--transport", settings.transport)->check(CLI::IsMember({"tcp", "tls", "unix"}));
  app.add_option("--encoding", settings.encoding)->check(CLI::IsMember({"raw", "proto", "both"}));
  app.add_option("--tuning", settings.tuning)->check(CLI::IsMember({"tuned", "plain"}));
  CLI11_PARSE(app, argc, argv);
  if (settings.transport == "tls") settings.tls = make_credential();

  char folder[] = "/tmp/grpc_push_pull.XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    std::perror("grpc_push_pull: mkdtemp");
    return 1;
  }
  bool fine = true;
  if (settings.encoding != "proto") fine = compare(settings, folder, true) && fine;
  if (settings.encoding != "raw") fine = compare(settings, folder, false) && fine;
  unlink((std::string(folder) + "/server").c_str());
  rmdir(folder);
  return fine ? 0 : 1;
}
