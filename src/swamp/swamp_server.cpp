#include "swamp/swamp_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/error.h"
#include "network/server_links.h"
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
    settings.log = options_.log;
    SwampServerPorts& ports = *this;
    server_ = std::make_unique<BestModelServer>(settings, ports, snapshot ? &*snapshot : nullptr);
    links_.serve(*server_);
    if (snapshot) {
      log("going on from " + options_.state_dir.string() + " with version " +
          std::to_string(server_->best().version));
    }
    listener_ =
        listen(io_, options_.listener,
               {[this](const Greeting& hello) { return admit_worker(hello, options_.workers); },
                [this](std::unique_ptr<Link> link) { links_.accept(std::move(link)); },
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
    const Traffic traffic = links_.traffic();
    return SwampReport{.reason = reason_,
                       .counters = server_->counters(),
                       .version = best.version,
                       .score = best.score,
                       .loss = best.loss,
                       .refusals = listener_->refusals(),
                       .bytes_sent = traffic.sent,
                       .bytes_received = traffic.received};
  }

 private:
  void tick() {
    const Clock::time_point now = Clock::now();
    links_.report_heard();
    server_->on_tick(now);
    prepare_examiner();
    for (const auto& [id, held] : links_.all()) held->extra.release(*held->link);
    links_.remove_gone();
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
    if (ending_ && (now >= *ending_ || links_.all().empty())) {
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
    if (auto* const held = links_.find(to)) held->extra.send(*held->link, header, payload, owner);
  }

  void close(SwampConnection connection, const std::string& reason) override {
    links_.close(connection, reason);
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

  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  SwampServerOptions options_;
  boost::asio::io_context io_{1};
  boost::asio::steady_timer timer_{io_};
  const std::atomic<bool>* stop_ = nullptr;
  std::unique_ptr<BestModelServer> server_;
  ServerLinks<BestModelServer, LentModels> links_{[this](const std::string& line) { log(line); }};
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
