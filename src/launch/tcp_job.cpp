#include "launch/tcp_job.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "collectives/elastic.h"
#include "collectives/farewell.h"
#include "collectives/process_shared.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/bootstrap.h"
#include "launch/process_messages.h"
#include "launch/process_ranks.h"
#include "launch/runtime_folder.h"
#include "launch/tcp_job_hosts.h"
#include "network/sockets.h"

namespace cohort::launch {
namespace {

constexpr int kFirstChannelLane = 1;  // the meeting has the one before
// Of a process that comes back: to find who leads, at each door; to reach each of the others; and
// to be told by the former, which may be in the middle of a long step.
constexpr std::chrono::seconds kTimeToReach{15};
constexpr std::chrono::seconds kTimeAtADoor{3};
constexpr std::chrono::seconds kTimeToCall{8};  // longer than a silence
constexpr std::chrono::minutes kTimeToBeTold{10};
constexpr std::chrono::milliseconds kTryAgainAfter{300};
constexpr std::chrono::milliseconds kTimeToRefuse{500};

// What each process tells the others first.
struct Introduction {
  network::Address address;
  std::string host;  // its identity
  std::string name;

  std::string text() const { return address.text() + "\n" + host + "\n" + name; }
};

// Of all processes, as one text, and what follows it.
std::string joined_text(const std::vector<Introduction>& all, const std::string& rest) {
  std::string text;
  for (const Introduction& one : all) text += one.text() + "\n";
  return text + rest;
}

Introduction introduction_from(const std::string& text, int process) {
  const std::vector<std::string> lines = split(text, '\n');
  if (lines.size() != 3) {
    throw PeerError("process " + std::to_string(process) + " introduced itself badly");
  }
  return {network::parse_address(lines[0]), lines[1], lines[2]};
}

class TcpJob final : public Job {
 public:
  TcpJob(const JobOptions& options, const Variable& variable, const std::string& fallback)
      : options_(options) {
    const BootstrapPlan meeting = plan(variable);
    meet_ = meeting.meet;
    plan_.processes = meeting.processes;
    plan_.process = meeting.process;
    plan_.local_size = ranks_per_process(options.workers, plan_.processes);
    if (options.returns) {
      come_back(meeting, variable, private_folder(variable, fallback));
    } else if (plan_.processes > 1) {
      meet(meeting, variable, private_folder(variable, fallback));
    } else {
      activities_ = activities_of(plan_, nullptr);
    }
    main_ = note_failures(between(kMain), failed_);
  }
  TcpJob(const TcpJob&) = delete;
  TcpJob& operator=(const TcpJob&) = delete;

  ~TcpJob() override {
    try {
      if (!failed_->load() && !outlives_losses()) {
        main_->barrier(deadline_in(std::min(collectives::kFarewellTime, options_.start_timeout)));
      }
    } catch (const std::exception&) {
      // The others have ended, or will find out: nothing here depends on them any more.
    }
    if (links_) links_->stop();
  }

  JobShape shape() const override {
    JobShape shape = shape_of(plan_);
    shape.outlives_losses = outlives_losses();
    return shape;
  }
  collectives::Collectives& between_processes() override { return *main_; }

  std::vector<collectives::Membership> join() override {
    std::vector<collectives::Membership> members =
        options_.returns ? member_who_is_back() : join_all();
    // On one host collectives go through memory; then only messages take connections.
    const bool connected = plan_.hosts.size() > 1 || options_.messages;
    if (plan_.processes > 1 && connected) members.front().links = meter_;
    if (!options_.messages) return members;
    auto messages = rank_messages(plan_, std::move(messages_));
    std::vector<transport::Transport*> plain;  // what is said there is no part of the training
    for (const auto& one : messages) plain.push_back(one.get());
    give_messages(members, std::move(messages));
    for (std::size_t i = 0; i < members.size() && outlives_losses(); ++i) {
      auto elastic =
          std::make_unique<collectives::ElasticCollectives>(*plain[i], elastic_options(), came_to_);
      members[i].elastic = elastic.get();
      members[i].control = std::move(elastic);
    }
    return members;
  }

  void set_rejoin_info(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    rejoin_info_ = text;
  }
  std::string rejoin_info() const override { return rejoin_info_; }

  std::vector<network::Address> addresses() const override {
    const std::lock_guard lock(mutex_);
    std::vector<network::Address> all;
    for (int process = 0; process < static_cast<int>(all_.size()); ++process) {
      if (process != plan_.process) all.push_back(all_[process].address);
    }
    return all;
  }

  void skip_farewell() override { failed_->store(true); }

 private:
  bool outlives_losses() const {
    return options_.outlives_losses && options_.messages && plan_.processes > 1;
  }

  // The network that cut a process off may be back in a moment.
  BootstrapPlan plan(const Variable& variable) const {
    const Deadline deadline = deadline_in(kTimeToReach);
    while (true) {
      try {
        return plan_bootstrap(options_, variable);
      } catch (const PeerError&) {
        if (!options_.returns || Clock::now() + kTryAgainAfter > deadline) throw;
        std::this_thread::sleep_for(kTryAgainAfter);
      }
    }
  }

  std::vector<collectives::Membership> join_all() {
    return join_processes(
        plan_, activities_, [this](GroupChannel channel) { return between(channel); }, failed_);
  }

  // Its collectives other than the elastic one were lost with its predecessor.
  std::vector<collectives::Membership> member_who_is_back() {
    std::vector<collectives::Membership> members(1);
    members[0].rank = plan_.process;
    members[0].size = plan_.processes;
    members[0].host_rank = plan_.host_index;
    members[0].host_size = plan_.host_size();
    members[0].gradients = lone_group(plan_);
    members[0].activity = activities_.front();
    return members;
  }

  // One that can come back has one rank: a process that has several is not let in again.
  bool lets_back() const { return outlives_losses() && plan_.local_size == 1; }

  collectives::ElasticOptions elastic_options() {
    collectives::ElasticOptions elastic;
    elastic.introduce = [this](Rank rank, const std::string& text) {
      return introduce(rank, text);
    };
    elastic.joined = [this](Rank rank, const std::string& text) {
      const std::lock_guard lock(mutex_);
      all_[rank] = introduction_from(text, rank);
    };
    elastic.has_ended = [this](Rank rank) {
      std::unique_lock lock(mutex_);
      const network::Address address = all_[rank / plan_.local_size].address;
      lock.unlock();
      return network::nobody_listens_at(address, kTimeToRefuse);
    };
    elastic.leads = [this] { lead(); };
    return elastic;
  }

  // What a process that is back is told by the one that leads.
  std::string introduce(Rank rank, const std::string& text) {
    if (!lets_back()) {
      throw ConfigError("a process with several workers cannot come back: go on with --resume");
    }
    const std::lock_guard lock(mutex_);
    all_[rank] = introduction_from(text, rank);
    return joined_text(all_, rejoin_info_);
  }

  // Who comes back looks at the meeting point: whoever leads should be there, if it is on that host
  // and nobody else, such as a process that was stopped, is there still.
  void lead() {
    if (!lets_back() || at_meeting_point_) return;
    at_meeting_point_ = node_->address() == meet_ || node_->listen_also(meet_);
    if (at_meeting_point_ || std::exchange(said_where_, true) || !options_.note) return;
    options_.note("a process that comes back finds the others with --rejoin " +
                  node_->address().text());
  }

  transport::TcpNodeOptions node_options(const BootstrapPlan& where,
                                         const std::string& folder) const {
    transport::TcpNodeOptions own;
    own.job = where.job;
    own.rank = where.process;
    own.size = where.processes;
    own.listen = where.listen;
    own.credentials = options_.credentials;
    own.links.silence = options_.silence;
    own.links.meter = meter_;
    own.runtime_folder = folder;
    own.log = options_.note;
    return own;
  }

  void come_back(const BootstrapPlan& where, const Variable& variable, const std::string& folder) {
    if (!lets_back()) {
      throw ConfigError(
          "only a process of --engine tcp with one worker can come back (--rejoin), to the others "
          "of its job; a run as a whole goes on with --resume");
    }
    plan_.hosts.front().clear();
    for (int process = 0; process < plan_.processes; ++process) {
      plan_.hosts.front().push_back(process);
    }
    BootstrapPlan own = where;
    if (own.listen == own.meet) own.listen.port = 0;  // where another may be now
    std::vector<network::Address> doors = options_.returns_to;
    doors.push_back(where.meet);
    const Deadline deadline =
        deadline_in(std::min<Clock::duration>(kTimeToReach, options_.start_timeout));
    std::unique_ptr<transport::TcpTransport> messages;
    std::vector<bool> present;
    std::string text;
    std::vector<std::string> obstacles(doors.size());
    for (std::size_t at = 0; !messages; at = (at + 1) % doors.size()) {
      try {
        node_ = std::make_unique<transport::TcpNode>(node_options(own, folder));
        auto found = connect_late(*node_, plan_);
        came_to_ = found->call_anyone(doors[at], std::min(deadline, deadline_in(kTimeAtADoor)));
        const Introduction self{node_->address(), host_identity(variable), host_name(variable)};
        text = collectives::introduce_to(*found, *came_to_, self.text(), present,
                                         deadline_in(kTimeToBeTold));
        messages = std::move(found);
      } catch (const Error& error) {
        // Its predecessor may not have been missed yet, or another one may lead now.
        obstacles[at] = error.what();
        if (Clock::now() + kTryAgainAfter > deadline) {
          std::erase(obstacles, "");
          throw PeerError("process " + std::to_string(plan_.process) +
                          " cannot come back: " + cohort::join(obstacles, "; "));
        }
        std::this_thread::sleep_for(kTryAgainAfter);
      }
    }
    for (int process = 0; process < plan_.processes; ++process) {
      std::size_t end = 0;
      for (int line = 0; line < 3 && end != std::string::npos; ++line) {
        end = text.find('\n', end == 0 ? 0 : end + 1);
      }
      all_.push_back(introduction_from(text.substr(0, end), process));
      text.erase(0, end == std::string::npos ? end : end + 1);
    }
    rejoin_info_ = text;
    arrange(all_);
    activities_ = activities_of(plan_, nullptr);
    for (Rank rank = 0; rank < plan_.processes; ++rank) {
      if (rank == plan_.process || rank == *came_to_ || !present[rank]) continue;
      const Deadline until = deadline_in(kTimeToCall);
      // Who has not missed its predecessor yet refuses.
      while (!messages->call(rank, all_[rank].address, until)) {
        if (Clock::now() + kTryAgainAfter > until) break;
        std::this_thread::sleep_for(kTryAgainAfter);
      }
      if (options_.note && !messages->gone(rank).empty()) {
        options_.note("rank " + std::to_string(plan_.process) +
                      " is back, but has not reached rank " + std::to_string(rank));
      }
    }
    messages_ = std::move(messages);
  }

  void meet(const BootstrapPlan& where, const Variable& variable, const std::string& folder) {
    const Deadline deadline = deadline_in(options_.start_timeout);
    auto own = std::make_unique<transport::TcpNode>(node_options(where, folder));
    transport::TcpNode& node = *own;
    const std::string counts = std::to_string(plan_.processes) + " processes and " +
                               std::to_string(plan_.size()) + " workers" +
                               (options_.messages ? " that send each other messages" : "");
    const Introduction self{node.address(), host_identity(variable), host_name(variable)};
    Bootstrap meeting(node, where, counts, self.text(), options_.note, deadline);
    for (const std::string& text : meeting.introductions()) {
      all_.push_back(introduction_from(text, static_cast<int>(all_.size())));
    }
    all_.front().address = where.meet;
    arrange(all_);
    share(meeting, deadline);
    activities_ = activities_of(plan_, shared_);
    if (options_.messages) {
      std::vector<network::Address> addresses;
      for (const Introduction& one : all_) addresses.push_back(one.address);
      messages_ = connect_messages(node, plan_, addresses, lets_back(), deadline);
    }
    if (plan_.hosts.size() > 1 && plan_.leads()) connect_hosts(node, all_, deadline);
    if (!outlives_losses()) return node.stop_listening();
    // While there is a listener the process lives (see has_ended).
    if (!lets_back()) node.admit_nobody("a process with several workers cannot come back");
    node_ = std::move(own);
  }

  // Who runs where. Hosts come in the order of their first processes, which speak for them.
  void arrange(const std::vector<Introduction>& all) {
    std::map<std::string, int> host_of;
    plan_.hosts.clear();
    plan_.names.clear();
    for (int process = 0; process < plan_.processes; ++process) {
      const Introduction& one = all[process];
      const auto [found, is_new] = host_of.emplace(one.host, static_cast<int>(plan_.hosts.size()));
      if (is_new) {
        plan_.hosts.emplace_back();
        plan_.names.push_back(one.name);
      }
      if (process == plan_.process) {
        plan_.host = found->second;
        plan_.host_index = static_cast<int>(plan_.hosts[found->second].size());
      }
      plan_.hosts[found->second].push_back(process);
    }
  }

  // Shares memory with the other processes of the host, whose name goes round, or why there is
  // none.
  void share(Bootstrap& meeting, Deadline deadline) {
    const collectives::ProcessGroup group = plan_.host_group(options_.silence);
    const bool several = plan_.neighbours().size() > 1;
    std::string message;
    if (several && plan_.leads()) {
      try {
        shared_ = collectives::ProcessShared::create(group, 0);
        message = shared_->name();
      } catch (const RunError& error) {
        message = std::string("!") + error.what();
      }
    }
    const auto all = meeting.exchange(message, deadline);
    if (!several) return;
    message = all[plan_.neighbours().front()];
    if (message.starts_with("!")) throw RunError(message.substr(1));
    if (!shared_) shared_ = collectives::ProcessShared::open(message, group, plan_.host_index);
    shared_->wait_for_all(deadline);
  }

  void connect_hosts(transport::TcpNode& node, const std::vector<Introduction>& all,
                     Deadline deadline) {
    transport::TcpLane lane;
    TcpHosts hosts;
    for (std::size_t host = 0; host < plan_.hosts.size(); ++host) {
      const int leader = plan_.hosts[host].front();
      lane.members.push_back(leader);
      lane.addresses.push_back(all[leader].address);
      std::vector<Rank> ranks;
      for (const int process : plan_.hosts[host]) {
        for (const Rank rank : plan_.ranks_of(process)) ranks.push_back(rank);
      }
      lane.names.push_back(list_of(ranks) + " on " + plan_.names[host]);
      if (static_cast<int>(host) == plan_.host) hosts.ranks = ranks;
    }
    hosts.names = lane.names;
    for (int index = 0; index < static_cast<int>(plan_.neighbours().size()); ++index) {
      for (int i = 0; i < plan_.local_size; ++i) {
        hosts.activities.push_back(shared_ ? shared_->activity(index, i) : activities_[i]);
      }
    }
    if (shared_) hosts.host_failure = [shared = shared_] { return failure_of(*shared); };
    std::array<std::unique_ptr<transport::TcpTransport>, kChannels> lanes;
    for (int channel = 0; channel < kChannels; ++channel) {
      lane.number = kFirstChannelLane + channel;
      lanes[channel] = node.connect(lane, deadline);
    }
    links_ = std::make_shared<TcpHostLinks>(std::move(lanes), std::move(hosts));
  }

  static std::string failure_of(const collectives::ProcessShared& shared) {
    for (int channel = 0; channel < kChannels; ++channel) {
      std::string failure = shared.failure(channel);
      if (!failure.empty()) return failure;
    }
    return "";
  }

  // One member a process.
  std::unique_ptr<collectives::Collectives> between(GroupChannel channel) {
    if (options_.returns) return lone_group(plan_);
    const bool one_a_host = std::all_of(plan_.hosts.begin(), plan_.hosts.end(),
                                        [](const auto& host) { return host.size() == 1; });
    if (plan_.hosts.size() > 1 && one_a_host) return links_->channel(channel);
    std::unique_ptr<collectives::Collectives> inside =
        shared_ ? shared_->channel(channel) : lone_group(plan_);
    if (plan_.hosts.size() == 1) return inside;
    std::shared_ptr<collectives::Collectives> outside;
    if (links_) outside = links_->channel(channel);
    return collectives::make_hierarchical(std::move(inside), outside, plan_.hosts, plan_.process);
  }

  JobOptions options_;
  std::shared_ptr<TrafficMeter> meter_ = std::make_shared<TrafficMeter>();  // of all links
  ProcessPlan plan_;
  // A leader's collectives ask from their own thread while the worker's learns who joined.
  mutable std::mutex mutex_;       // guards the next two once there are collectives
  std::vector<Introduction> all_;  // by process
  std::string rejoin_info_;
  network::Address meet_;
  std::unique_ptr<transport::TcpNode> node_;  // where processes may come back
  std::optional<Rank> came_to_;               // of one that is back: who led then
  bool at_meeting_point_ = false;             // others find this process, which leads, there
  bool said_where_ = false;                   // or elsewhere
  FailureFlag failed_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<collectives::ProcessShared>
      shared_;  // null where this process is alone on its host
  std::vector<std::shared_ptr<Activity>> activities_;  // of the ranks that live here
  std::shared_ptr<TcpHostLinks> links_;                // on leaders of several hosts
  std::unique_ptr<transport::Transport> messages_;     // between processes, until join() takes it
  std::unique_ptr<collectives::Collectives> main_;
};

}  // namespace

std::unique_ptr<Job> make_tcp_job(const JobOptions& options, const Variable& variable,
                                  const std::string& fallback_folder) {
  return std::make_unique<TcpJob>(options, variable, fallback_folder);
}

std::unique_ptr<Job> make_tcp_job(const JobOptions& options) {
  return make_tcp_job(options, own_variable, fallback_folder());
}

}  // namespace cohort::launch
