// A worker's side of the conversation with a best-model server, without sockets, threads and clock:
// the counterpart of best_model_server.h, and as the simulator runs it.
//
// It survives the connection: the owner connects again and calls on_connected(), and whatever the
// server may have missed is sent again. Offers are kept until their verdict has come.
//
// Order of use: on_connected, worker 0 initialize(), pull(kStart); then offers and pulls as wanted,
// one pull at a time; at the end leave(), until left() is true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/types.h"
#include "membership/conversation_client.h"
#include "network/frame.h"
#include "swamp/messages.h"
#include "swamp/swamp_spec.h"

namespace cohort::swamp {

class SwampClientPorts {
 public:
  virtual ~SwampClientPorts() = default;
  // `payload` is copied, unless `owner` is given: then it lies in that model, which is kept until
  // the frame is sent.
  virtual void send(const network::FrameHeader& header, std::span<const std::byte> payload,
                    const ModelValues& owner) = 0;
};

class BestModelClient final : public membership::ConversationClient {
 public:
  // `ports` outlives the client.
  BestModelClient(Rank worker, const SwampSpec& spec, SwampClientPorts& ports);
  ~BestModelClient() override;
  BestModelClient(const BestModelClient&) = delete;
  BestModelClient& operator=(const BestModelClient&) = delete;

  // ConversationClient.
  void on_connected(Deadline now) override;
  std::optional<std::span<std::byte>> place_for(const network::FrameHeader& header) override;
  void on_frame(const network::FrameHeader& header, std::span<const std::byte> payload,
                Deadline now) override;
  void on_lost(Deadline now) override;
  const membership::MembershipClient& membership() const override;
  std::string waits_for() const override;

  // Worker 0: what the job begins with, sent if the server has nothing yet.
  void initialize(ModelValues values);

  // Takes a model of the right size; its number. Not after leave().
  std::uint64_t offer(ModelValues values, double claim);
  std::size_t unsent() const;  // offers that have not been given to the connection
  // Verdicts since the last call, as they came.
  std::vector<OfferVerdict> take_verdicts();

  // Takes the place of a pull that is not answered.
  void pull(PullKind kind, std::uint64_t has_version);
  void cancel_pull();
  bool pulled() const;  // the last pull is answered
  // What it gave; nothing: there was no model for this worker. The values are there until the next
  // pull.
  const std::optional<PulledModel>& answer() const;
  std::span<const float> values() const;

  void leave();
  bool left() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort::swamp
