#include "collectives/mpi_transport.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "collectives/mpi_calls.h"
#include "core/error.h"
#include "transport/mailbox.h"

namespace cohort::collectives {
namespace {

constexpr int kMpiTag = 1;
constexpr int kAliveTag = 2;  // of its own, so that long messages do not hold it up
constexpr std::size_t kWaitBytes = std::size_t{128} << 10;  // from here on a sender waits
constexpr std::chrono::milliseconds kSignOfLife{250};
constexpr std::chrono::seconds kPartingTime{2};

enum class Kind : std::uint32_t { kMessage, kLast };

// What follows the payload of every piece, where taking it off moves nothing.
struct Label {
  transport::Tag tag = 0;
  Kind kind = Kind::kMessage;
  std::uint64_t still_to_come = 0;  // of this message, in the next pieces
};
static_assert(sizeof(Label) == 16);

struct Outgoing {
  Bytes bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

struct Incoming {
  Bytes bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

bool complete(MPI_Request& request) {
  int done = 0;
  check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

// Between two looks: not at all, then by letting others run, then by sleeping, at last for longer.
class Pause {
 public:
  void reset() { idle_ = 0; }
  void wait() {
    constexpr int kLooks = 200;
    constexpr int kYields = 400;
    constexpr int kNaps = 1000;
    constexpr std::chrono::microseconds kNap{100};
    constexpr std::chrono::microseconds kSleep{500};
    ++idle_;
    if (idle_ < kLooks) return;
    if (idle_ < kLooks + kYields) {
      sched_yield();
    } else if (idle_ < kLooks + kYields + kNaps) {
      std::this_thread::sleep_for(kNap);
    } else {
      --idle_;
      std::this_thread::sleep_for(kSleep);
    }
  }

 private:
  int idle_ = 0;
};

class MpiTransport final : public transport::Transport {
 public:
  MpiTransport(MPI_Comm communicator, const MpiTransportOptions& options, Deadline deadline)
      : transport::Transport(rank_in(communicator), size_of(communicator)),
        communicator_(copy_of(communicator, deadline)),
        piece_bytes_(options.piece_bytes),
        silence_(options.silence),
        peers_(size()),
        mailbox_(rank(), size(), options.names) {
    peers_[rank()].heard_last = true;
    peers_[rank()].said_last = true;
    pump_ = std::thread([this] { pump(); });
  }
  ~MpiTransport() override {
    close();
    part_by_ = deadline_in(kPartingTime).time_since_epoch().count();
    pump_.join();
    // MPI may still read and write what is not complete: that memory is its for good.
    for (Outgoing& message : outgoing_) new Bytes(std::move(message.bytes));
    for (Peer& peer : peers_) {
      for (Incoming& piece : peer.incoming) new Bytes(std::move(piece.bytes));
    }
  }

  void send(Rank to, transport::Tag tag, std::span<const std::byte> payload,
            Deadline deadline) override {
    check_rank(to);
    for (const Rank one : {to, rank()}) {
      if (!mailbox_.gone(one).empty()) cannot_send(to, one);
    }
    if (to == rank()) {
      mailbox_.put({to, tag, Bytes(payload.begin(), payload.end())});
      return;
    }
    std::list<Outgoing> pieces = cut(tag, payload);
    if (!post(to, pieces)) cannot_send(to, mailbox_.gone(rank()).empty() ? to : rank());
    if (payload.size() >= kWaitBytes) await(to, pieces, deadline);
    hand_over(pieces);
  }

  transport::Message receive(Rank from, transport::Tag tag, Deadline deadline) override {
    check_rank(from);
    return mailbox_.receive(from, tag, deadline);
  }

  std::optional<transport::Message> receive_any(transport::Tag tag, Deadline deadline) override {
    return mailbox_.receive_any(tag, deadline);
  }

  std::string gone(Rank peer) const override {
    check_rank(peer);
    return mailbox_.gone(peer);
  }

  void close() override {
    mailbox_.note_gone(rank());
    if (closed_.exchange(true)) return;
    for (Rank peer = 0; peer < size(); ++peer) say_last(peer);
  }

 private:
  struct Peer {
    std::mutex sending;      // guards the next line, and keeps the pieces of a message together
    bool said_last = false;  // nothing more goes there
    // Of the pump alone:
    bool heard_last = false;        // nothing more comes from there
    std::deque<Incoming> incoming;  // in the order sent
    Bytes message;                  // the pieces so far of one that is cut
    std::chrono::milliseconds silent{0};
  };

  static int rank_in(MPI_Comm communicator) {
    int rank = 0;
    check_mpi(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
    return rank;
  }
  static int size_of(MPI_Comm communicator) {
    int size = 1;
    check_mpi(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
    return size;
  }

  std::list<Outgoing> cut(transport::Tag tag, std::span<const std::byte> payload) const {
    std::list<Outgoing> pieces;
    std::size_t begin = 0;
    do {
      const std::size_t length = std::min(piece_bytes_, payload.size() - begin);
      const Label label{tag, Kind::kMessage, payload.size() - begin - length};
      pieces.push_back({labelled(payload.subspan(begin, length), label)});
      begin += length;
    } while (begin < payload.size());
    return pieces;
  }

  static Bytes labelled(std::span<const std::byte> payload, const Label& label) {
    Bytes bytes;
    bytes.reserve(payload.size() + sizeof label);
    bytes.assign(payload.begin(), payload.end());
    const auto tail = std::as_bytes(std::span(&label, 1));
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    return bytes;
  }

  // False when nothing goes there any more.
  bool post(Rank to, std::list<Outgoing>& pieces, bool last = false) {
    const std::lock_guard lock(peers_[to].sending);
    if (std::exchange(peers_[to].said_last, peers_[to].said_last || last)) return false;
    try {
      for (Outgoing& piece : pieces) {
        check_mpi(MPI_Isend(piece.bytes.data(), static_cast<int>(piece.bytes.size()), MPI_BYTE, to,
                            kMpiTag, communicator_, &piece.request),
                  "MPI_Isend");
      }
    } catch (const PeerError&) {
      hand_over(pieces);
      throw;
    }
    return true;
  }

  // Takes those off that have got away, which are all, unless it throws.
  void await(Rank to, std::list<Outgoing>& pieces, Deadline deadline) {
    const auto start = Clock::now();
    const std::size_t count = pieces.size();
    try {
      while (!pieces.empty()) {
        const bool away =
            wait_for(pieces.front().request, deadline, [&] { return !mailbox_.gone(to).empty(); });
        if (!away) break;
        pieces.pop_front();
      }
    } catch (const PeerError&) {
      hand_over(pieces);
      throw;
    }
    if (pieces.empty()) return;
    const std::size_t left = pieces.size();
    hand_over(pieces);
    if (!mailbox_.gone(to).empty()) cannot_send(to, to);
    char text[96];
    std::snprintf(text, sizeof text, " did not take %zu of %zu pieces of a message within %.3g s",
                  left, count, seconds_between(start, Clock::now()));
    throw PeerError(mailbox_.name(rank()) + ": " + mailbox_.name(to) + text);
  }

  // The pump sees to what is not complete yet.
  void hand_over(std::list<Outgoing>& pieces) {
    const std::lock_guard lock(mutex_);
    outgoing_.splice(outgoing_.end(), pieces);
  }

  // Each says it once to each other: when it closes, or when the other has.
  void say_last(Rank to) {
    std::list<Outgoing> pieces;
    pieces.push_back({labelled({}, {0, Kind::kLast, 0})});
    try {
      if (post(to, pieces, true)) hand_over(pieces);
    } catch (const PeerError&) {  // it is gone
    }
  }

  void pump() {
    Pause pause;
    auto last = Clock::now();
    try {
      while (!parted()) {
        bool moved = take_new();
        for (Rank peer = 0; peer < size(); ++peer) moved = finish(peer) || moved;
        moved = drop_sent() || moved;
        if (const auto now = Clock::now(); now - last >= kSignOfLife) {
          // When this process was stopped itself, the time it missed says nothing of the others.
          live(std::min(std::chrono::duration_cast<std::chrono::milliseconds>(now - last),
                        2 * kSignOfLife));
          last = now;
        }
        if (moved) pause.reset();
        pause.wait();
      }
      hear_signs();  // so that none is left over
    } catch (const PeerError& error) {
      for (Rank peer = 0; peer < size(); ++peer) {
        if (peer != rank()) mailbox_.note_gone(peer, std::string("is lost: ") + error.what());
      }
    }
  }

  // Begins to receive what is there.
  bool take_new() {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check_mpi(MPI_Improbe(MPI_ANY_SOURCE, kMpiTag, communicator_, &found, &message, &status),
              "MPI_Improbe");
    if (found == 0) return false;
    int length = 0;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
    auto& incoming = peers_[status.MPI_SOURCE].incoming;
    incoming.push_back({Bytes(static_cast<std::size_t>(std::max(0, length)))});
    check_mpi(MPI_Imrecv(incoming.back().bytes.data(), length, MPI_BYTE, &message,
                         &incoming.back().request),
              "MPI_Imrecv");
    return true;
  }

  bool finish(Rank from) {
    Peer& peer = peers_[from];
    bool moved = false;
    while (!peer.incoming.empty() && complete(peer.incoming.front().request)) {
      Bytes piece = std::move(peer.incoming.front().bytes);
      peer.incoming.pop_front();
      peer.silent = std::chrono::milliseconds(0);
      take(from, std::move(piece));
      moved = true;
    }
    return moved;
  }

  void take(Rank from, Bytes piece) {
    Peer& peer = peers_[from];
    Label label;
    if (piece.size() < sizeof label) return note_lost(from, "it sent a message that is too short");
    std::memcpy(&label, piece.data() + piece.size() - sizeof label, sizeof label);
    piece.resize(piece.size() - sizeof label);
    if (label.kind == Kind::kLast) {
      peer.heard_last = true;
      mailbox_.note_gone(from);
      return say_last(from);
    }
    if (!peer.message.empty()) {
      peer.message.insert(peer.message.end(), piece.begin(), piece.end());
      piece = std::exchange(peer.message, {});
    }
    if (label.still_to_come > 0) {
      peer.message = std::move(piece);
    } else {
      mailbox_.put({from, label.tag, std::move(piece)});
    }
  }

  bool drop_sent() {
    const std::lock_guard lock(mutex_);
    const std::size_t before = outgoing_.size();
    outgoing_.remove_if([](Outgoing& piece) { return complete(piece.request); });
    return outgoing_.size() != before;
  }

  void say_alive(Rank to) {
    std::list<Outgoing> sign(1);
    const std::lock_guard lock(peers_[to].sending);
    if (peers_[to].said_last) return;
    check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, to, kAliveTag, communicator_, &sign.front().request),
              "MPI_Isend");
    hand_over(sign);
  }

  void hear_signs() {
    for (int found = 1; found != 0;) {
      MPI_Status status;
      check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kAliveTag, communicator_, &found, &status),
                "MPI_Iprobe");
      if (found == 0) continue;
      check_mpi(MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, kAliveTag, communicator_,
                         MPI_STATUS_IGNORE),
                "MPI_Recv");
      peers_[status.MPI_SOURCE].silent = std::chrono::milliseconds(0);
    }
  }

  void live(std::chrono::milliseconds passed) {
    for (Peer& peer : peers_) peer.silent += passed;
    hear_signs();
    for (Rank other = 0; other < size(); ++other) {
      Peer& peer = peers_[other];
      if (other == rank() || peer.heard_last) continue;
      say_alive(other);
      if (peer.silent < silence_) continue;
      char text[64];
      std::snprintf(text, sizeof text, "it has not answered for %.1f s",
                    1e-3 * static_cast<double>(peer.silent.count()));
      note_lost(other, text);
    }
  }

  void note_lost(Rank peer, const std::string& why) {
    peers_[peer].heard_last = true;
    mailbox_.note_gone(peer, "is lost: " + why);
    const std::lock_guard lock(peers_[peer].sending);
    peers_[peer].said_last = true;
  }

  // Whether this transport was destroyed, and nothing is on its way or the time for it is over.
  bool parted() {
    const auto until = part_by_.load();
    if (until == 0) return false;
    if (Clock::now().time_since_epoch().count() >= until) return true;
    const bool heard = std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
      return peer.heard_last && peer.incoming.empty();
    });
    const std::lock_guard lock(mutex_);
    return heard && outgoing_.empty();
  }

  [[noreturn]] void cannot_send(Rank to, Rank who) const {
    const std::string why = mailbox_.gone(who);
    throw PeerError(mailbox_.name(rank()) + ": cannot send to " + mailbox_.name(to) + ": " +
                    mailbox_.name(who) + " " +
                    (why.empty() ? std::string(transport::kClosed) : why));
  }

  const MPI_Comm communicator_;
  const std::size_t piece_bytes_;
  const std::chrono::milliseconds silence_;
  std::vector<Peer> peers_;  // by process
  transport::Mailbox mailbox_;
  std::atomic<bool> closed_ = false;
  std::atomic<Clock::rep> part_by_ = 0;  // 0: it goes on
  std::mutex mutex_;                     // guards the next line
  std::list<Outgoing> outgoing_;         // not complete yet
  std::thread pump_;
};

}  // namespace

std::unique_ptr<transport::Transport> make_mpi_transport(MPI_Comm communicator,
                                                         const MpiTransportOptions& options,
                                                         Deadline deadline) {
  return std::make_unique<MpiTransport>(communicator, options, deadline);
}

}  // namespace cohort::collectives
