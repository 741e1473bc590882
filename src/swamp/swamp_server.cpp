#include "swamp/swamp_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/error.h"
#include "storage/state_folder.h"
#include "swamp/examiner_thread.h"
#include "swamp/lent_models.h"

namespace cohort {
namespace {

constexpr std::chrono::milliseconds kTick{50};
// What a worker may still have to be told when the job is over.
constexpr std::chrono::milliseconds kFarewell{500};

constexpr const char* kModelVector = "model";
constexpr const char* kLossesVector = "losses";

StateSnapshot to_state(SwampSnapshot snapshot) {
  StateSnapshot state{
      .id = snapshot.id, .extra = {{"swamp", std::move(snapshot.state)}}, .vectors = {}};
  if (snapshot.model) state.vectors.emplace_back(kModelVector, std::move(snapshot.model));
  if (!snapshot.losses.empty()) {
    state.vectors.emplace_back(
        kLossesVector, std::make_shared<const std::vector<float>>(std::move(snapshot.losses)));
  }
  return state;
}

SwampSnapshot from_state(const StateSnapshot& state, const std::filesystem::path& folder) {
  const auto text = state.extra.find("swamp");
  if (text == state.extra.end() || !text->is_string()) {
    throw FileError(folder.string() + ": not a best-model server's state");
  }
  SwampSnapshot snapshot{.id = state.id,
                         .state = text->get<std::string>(),
                         .model = state.find(kModelVector),
                         .losses = {}};
  if (const auto losses = state.find(kLossesVector)) snapshot.losses = *losses;
  return snapshot;
}

Seed random_seed() {
  std::random_device device;
  return Seed{device()} << 32 | device();
}

}  // namespace

class SwampServer::Implementation final : private SwampServerPorts {
 public:
  explicit Implementation(SwampServerOptions options) : options_(std::move(options)) {
    if (!options_.log) options_.log = [](const std::string&) {};
    if (!options_.make_examiner) throw ConfigError("a best-model server needs an examiner");
    std::optional<SwampSnapshot> snapshot;
    if (!options_.state_dir.empty()) {
      folder_ = std::make_unique<StateFolder>(options_.state_dir);
      const auto state = folder_->load([&](const std::string& text) { log("warning: " + text); });
      if (state) snapshot = from_state(*state, options_.state_dir);
    }
    SwampServerSettings settings;
    settings.keeps_state = folder_ != nullptr;
    settings.told = options_.told;
    settings.idle_exit = options_.idle_exit;
    settings.evict_after = options_.evict_after;
    settings.late_start = options_.late_start;
    settings.seed = random_seed();
    SwampServerPorts& ports = *this;
    server_ = std::make_unique<BestModelServer>(settings, ports, snapshot ? &*snapshot : nullptr);
    if (snapshot) {
      log("going on from " + options_.state_dir.string() + " with version " +
          std::to_string(server_->best().version));
    }
    listener_ = listen(io_, options_.listener,
                       {[this](const Identity& peer) { return admit(peer); },
                        [this](std::unique_ptr<Link> link) { accept(std::move(link)); },
                        [this](const std::string& line) { log(line); }});
  }

  ~Implementation() override {
    examiner_.reset();  // their threads post to the loop
    folder_.reset();
  }

  const Address& address() const { return listener_->address(); }

  SwampReport run(const std::atomic<bool>& stop) {
    stop_ = &stop;
    tick();
    io_.run();
    if (examiner_) examiner_->finish();
    if (failure_) std::rethrow_exception(failure_);
    const BestRecord& best = server_->best();
    SwampReport report{.reason = reason_,
                       .counters = server_->counters(),
                       .version = best.version,
                       .score = best.score,
                       .loss = best.loss,
                       .refusals = listener_->refusals(),
                       .bytes_sent = sent_,
                       .bytes_received = received_};
    for (const auto& [id, held] : connections_) {
      report.bytes_sent += held->link->bytes_sent();
      report.bytes_received += held->link->bytes_received();
    }
    return report;
  }

 private:
  // One worker's connection, and what the link calls.
  struct Connection final : LinkHandler {
    Connection(Implementation& process, SwampConnection number, std::unique_ptr<Link> established)
        : owner(process), id(number), link(std::move(established)) {}

    std::optional<std::span<std::byte>> place_for(Link&, const FrameHeader& header) override {
      return forgotten ? std::nullopt : owner.server_->place_for(id, header);
    }
    void frame_arrived(Link&, const FrameHeader& header,
                       std::span<const std::byte> payload) override {
      if (forgotten) return;
      owner.server_->on_frame(id, header, payload, Clock::now());
      owner.prepare_examiner();
    }
    void link_lost(Link& lost, const std::string& reason) override {
      if (!forgotten) {
        if (reason != kSaidGoodbye) owner.log("lost " + lost.peer_text() + ": " + reason);
        owner.server_->on_lost(id, Clock::now());
      }
      boost::asio::post(owner.io_, [&process = owner, number = id] { process.remove(number); });
    }

    Implementation& owner;
    SwampConnection id;
    LentModels lent;  // outlives the link, which copies them when it goes
    std::unique_ptr<Link> link;
    bool forgotten = false;       // the server has closed it; only what is unsent still goes out
    Clock::time_point told = {};  // when something was heard, as the server knows
  };

  std::string admit(const Identity& peer) const {
    if (peer.role != Role::kWorker) return "only workers are served here";
    if (options_.workers > 0 && peer.rank >= options_.workers) {
      return "there is no worker " + std::to_string(peer.rank) + ": this server expects " +
             std::to_string(options_.workers);
    }
    return {};
  }

  void accept(std::unique_ptr<Link> link) {
    const SwampConnection id = ++last_id_;
    auto connection = std::make_unique<Connection>(*this, id, std::move(link));
    Connection& handler = *connection;
    connections_.emplace(id, std::move(connection));
    server_->on_connected(id, handler.link->peer().rank, Clock::now());
    handler.link->set_handler(handler);
  }

  void remove(SwampConnection id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    sent_ += found->second->link->bytes_sent();
    received_ += found->second->link->bytes_received();
    connections_.erase(found);
  }

  // Those the server has done with, once their last words are out.
  void remove_closed() {
    std::vector<SwampConnection> closed;
    for (const auto& [id, held] : connections_) {
      held->lent.release(*held->link);
      if (held->forgotten && held->link->unsent() == 0) closed.push_back(id);
    }
    for (const SwampConnection id : closed) remove(id);
  }

  void tick() {
    const Clock::time_point now = Clock::now();
    for (auto& [id, held] : connections_) {
      const Clock::time_point heard = held->link->last_heard();
      if (held->forgotten || heard <= held->told) continue;
      held->told = heard;
      server_->on_heard(id, heard);
    }
    server_->on_tick(now);
    prepare_examiner();
    remove_closed();
    if (!ending_ && *stop_) {
      reason_ = "stopped by a signal, " + server_->text();
      io_.stop();
      return;
    }
    const auto why = server_->finished();
    if (why && !ending_) {
      reason_ = *why;
      ending_ = now + kFarewell;
      listener_->stop();
    }
    if (ending_ && (now >= *ending_ || connections_.empty())) {
      io_.stop();
      return;
    }
    timer_.expires_after(kTick);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) tick();
    });
  }

  // As soon as it is known what the job is: it takes a while to load the data.
  void prepare_examiner() {
    if (examiner_ || server_->spec() == nullptr) return;
    ExaminerThread::Events events;
    events.make = [this, spec = *server_->spec()] { return options_.make_examiner(spec); };
    events.not_made = [this](const std::exception_ptr& error) {
      boost::asio::post(io_, [this, error] { fail(error); });
    };
    events.done = [this](std::uint64_t ticket, std::vector<float> losses, std::string failure) {
      boost::asio::post(io_,
                        [this, ticket, losses = std::move(losses), failure = std::move(failure)] {
                          if (failure.empty()) {
                            server_->on_examined(ticket, losses, Clock::now());
                          } else {
                            server_->on_not_examined(ticket, failure, Clock::now());
                          }
                        });
    };
    examiner_ = std::make_unique<ExaminerThread>(std::move(events));
    examiner_->prepare();
  }

  void fail(const std::exception_ptr& error) {
    failure_ = error;
    std::string why = "unknown";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& what) {
      why = what.what();
    } catch (...) {
      why = "unknown";
    }
    server_->give_up("models cannot be examined: " + why, Clock::now());
  }

  // SwampServerPorts.
  void send(SwampConnection to, const FrameHeader& header, std::span<const std::byte> payload,
            const ModelValues& owner) override {
    const auto found = connections_.find(to);
    if (found != connections_.end()) {
      found->second->lent.send(*found->second->link, header, payload, owner);
    }
  }

  void close(SwampConnection connection, const std::string& reason) override {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    log("closing the connection of " + found->second->link->peer_text() + ": " + reason);
    found->second->forgotten = true;
    found->second->link->close_after_sending();
  }

  void examine(std::uint64_t ticket, const ModelValues& model, std::uint64_t draw) override {
    prepare_examiner();
    examiner_->examine(ticket, model, draw);
  }

  void persist(SwampSnapshot snapshot) override {
    folder_->write(to_state(std::move(snapshot)),
                   [this](std::uint64_t id, const std::string& failure) {
                     boost::asio::post(io_, [this, id, failure] {
                       if (failure.empty()) {
                         server_->on_persisted(id, Clock::now());
                       } else {
                         server_->on_persist_failed(id, failure, Clock::now());
                       }
                     });
                   });
  }

  void accepted(const BestRecord& best) override {
    if (!options_.accepted) return;
    examiner_->run([this, version = best.version, loss = best.loss, model = best.model] {
      try {
        options_.accepted(version, loss, *model);
      } catch (const std::exception& error) {
        boost::asio::post(io_, [this, text = std::string(error.what())] {
          log("warning: what was to happen with an accepted model failed: " + text);
        });
      }
    });
  }

  void log(const std::string& line) override { options_.log(line); }

  SwampServerOptions options_;
  boost::asio::io_context io_{1};
  boost::asio::steady_timer timer_{io_};
  const std::atomic<bool>* stop_ = nullptr;
  std::unique_ptr<BestModelServer> server_;
  std::map<SwampConnection, std::unique_ptr<Connection>> connections_;
  SwampConnection last_id_ = 0;
  std::uint64_t sent_ = 0;  // by connections that are gone
  std::uint64_t received_ = 0;
  std::string reason_;
  std::exception_ptr failure_;
  std::optional<Clock::time_point> ending_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<StateFolder> folder_;
  std::unique_ptr<ExaminerThread> examiner_;
};

SwampServer::SwampServer(SwampServerOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}

SwampServer::~SwampServer() = default;

const Address& SwampServer::address() const { return implementation_->address(); }

SwampReport SwampServer::run(const std::atomic<bool>& stop) { return implementation_->run(stop); }

}  // namespace cohort
