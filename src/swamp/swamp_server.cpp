#include "swamp/swamp_server.h"

#include <boost/asio/post.hpp>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/error.h"
#include "membership/server_loop.h"
#include "storage/state_folder.h"
#include "swamp/examiner_thread.h"
#include "swamp/lent_models.h"

namespace cohort::swamp {
namespace {

constexpr const char* kModelVector = "model";
constexpr const char* kLossesVector = "losses";

storage::StateSnapshot to_state(SwampSnapshot snapshot) {
  storage::StateSnapshot state{
      .id = snapshot.id, .extra = {{"swamp", std::move(snapshot.state)}}, .vectors = {}};
  if (snapshot.model) state.vectors.emplace_back(kModelVector, std::move(snapshot.model));
  if (!snapshot.losses.empty()) {
    state.vectors.emplace_back(
        kLossesVector, std::make_shared<const std::vector<float>>(std::move(snapshot.losses)));
  }
  return state;
}

SwampSnapshot from_state(const storage::StateSnapshot& state, const std::filesystem::path& folder) {
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
      folder_ = std::make_unique<storage::StateFolder>(options_.state_dir);
      const auto state = folder_->load([&](const std::string& text) { log("warning: " + text); });
      if (state) snapshot = from_state(*state, options_.state_dir);
    }
    const membership::MembershipOptions& membership = options_;
    SwampServerSettings settings{membership};
    settings.keeps_state = folder_ != nullptr;
    settings.told = options_.told;
    settings.seed = random_seed();
    SwampServerPorts& ports = *this;
    server_ = std::make_unique<BestModelServer>(settings, ports, snapshot ? &*snapshot : nullptr);
    if (snapshot) {
      log("going on from " + options_.state_dir.string() + " with version " +
          std::to_string(server_->best().version));
    }
    loop_.listen(*server_, options_.listener, options_.workers);
  }

  ~Implementation() override {
    examiner_.reset();  // their threads post to the loop
    folder_.reset();
  }

  const network::Address& address() const { return loop_.listener().address(); }

  SwampReport run(const std::atomic<bool>& stop) {
    loop_.start(stop, std::chrono::nanoseconds(0), [this] {
      prepare_examiner();
      for (const auto& [id, held] : loop_.links().all()) held->extra.release(*held->link);
    });
    loop_.io().run();
    if (examiner_) examiner_->finish();
    if (failure_) std::rethrow_exception(failure_);
    const BestRecord& best = server_->best();
    const Traffic traffic = loop_.links().traffic();
    return SwampReport{.reason = loop_.reason(),
                       .counters = server_->counters(),
                       .version = best.version,
                       .score = best.score,
                       .loss = best.loss,
                       .refusals = loop_.listener().refusals(),
                       .bytes_sent = traffic.sent,
                       .bytes_received = traffic.received};
  }

 private:
  // As soon as it is known what the job is: it takes a while to load the data.
  void prepare_examiner() {
    if (examiner_ || server_->spec() == nullptr) return;
    ExaminerThread::Events events;
    events.make = [this, spec = *server_->spec()] { return options_.make_examiner(spec); };
    events.not_made = [this](const std::exception_ptr& error) {
      boost::asio::post(loop_.io(), [this, error] { fail(error); });
    };
    events.done = [this](std::uint64_t ticket, std::vector<float> losses, std::string failure) {
      boost::asio::post(loop_.io(),
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
  void send(membership::ConnectionId to, const network::FrameHeader& header,
            std::span<const std::byte> payload, const ModelValues& owner) override {
    if (auto* const held = loop_.links().find(to))
      held->extra.send(*held->link, header, payload, owner);
  }

  void close(membership::ConnectionId connection, const std::string& reason) override {
    loop_.links().close(connection, reason);
  }

  void examine(std::uint64_t ticket, const ModelValues& model, std::uint64_t draw) override {
    prepare_examiner();
    examiner_->examine(ticket, model, draw);
  }

  void persist(SwampSnapshot snapshot) override {
    folder_->write(to_state(std::move(snapshot)), loop_.persisted());
  }

  void accepted(const BestRecord& best) override {
    if (!options_.accepted) return;
    examiner_->run([this, version = best.version, loss = best.loss, model = best.model] {
      try {
        options_.accepted(version, loss, *model);
      } catch (const std::exception& error) {
        boost::asio::post(loop_.io(), [this, text = std::string(error.what())] {
          log("warning: what was to happen with an accepted model failed: " + text);
        });
      }
    });
  }

  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  SwampServerOptions options_;
  std::unique_ptr<BestModelServer> server_;
  membership::ServerLoop<BestModelServer, LentModels> loop_{
      [this](const std::string& line) { log(line); }};
  std::exception_ptr failure_;
  std::unique_ptr<storage::StateFolder> folder_;
  std::unique_ptr<ExaminerThread> examiner_;
};

SwampServer::SwampServer(SwampServerOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}

SwampServer::~SwampServer() = default;

const network::Address& SwampServer::address() const { return implementation_->address(); }

SwampReport SwampServer::run(const std::atomic<bool>& stop) { return implementation_->run(stop); }

}  // namespace cohort::swamp
