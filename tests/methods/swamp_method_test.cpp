#include "methods/swamp_method.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "methods/flat_model.h"
#include "methods/tiny_model.h"
#include "swamp/swamp_group.h"

namespace cohort::methods {
namespace {

// Workers of one test, each with a model of its own, and a server that takes the first value of a
// model for its loss. Steps are taken by hand, without gradients: models are what the test makes
// them.
class SwampWorkers : public testing::Test {
 protected:
  struct Worker {
    Worker(const MethodOptions& given, const ServerAccess& access, std::uint64_t seed)
        : model(seed), replica(model, {.optimizer_options = {.momentum = 0.9}}) {
      MethodOptions options = given;
      options.servers = &access;
      method = methods().make("swamp", options);
      method->start(replica);
    }

    void become(float value) {
      const c10::NoGradGuard no_grad;
      at::Tensor parameters = replica.parameters();
      parameters.fill_(value);
      at::Tensor statistics = replica.statistics();
      statistics.fill_(value + 100);
    }
    float value() const { return replica.parameters()[0].item<float>(); }

    // Batches until the next probe, with a learning rate that changes nothing, then the probe.
    void probe(double loss) {
      while (method->before_step(replica) == StepKind::kTrain) {
        replica.begin_step();
        replica.begin_pass(true);
        replica.finish_backward();
        method->update(replica, {step++, 0});
      }
      method->update(replica, {step++, 0, loss});
    }

    TinyModel model;
    Replica replica;
    std::unique_ptr<UpdateMethod> method;
    Step step = 0;
  };

  std::unique_ptr<Worker> make(Rank rank, double pull = 1, double crossover = 0) {
    if (access_.servers.empty()) {
      group_.options.workers = 2;
      group_.start();
      const swamp::SwampClientOptions client = group_.client(0, {});
      access_.servers = {client.server};
      access_.job = client.job;
      access_.swamp = {.workers = 2, .policy = policy_};
    }
    MethodOptions options;
    options.rank = rank;
    options.size = 2;
    options.patience = std::chrono::seconds(20);
    options.own = {{"free-trial-steps", std::int64_t{3}},
                   {"pull-probability", pull},
                   {"crossover-probability", crossover}};
    return std::make_unique<Worker>(options, access_, static_cast<std::uint64_t>(rank + 1));
  }

  // The server has judged that many models to be the best.
  void wait_for_version(std::size_t version) {
    for (int tries = 0; tries < 4000 && group_.accepted().size() < version; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(group_.accepted().size(), version);
  }

  std::string policy_ = "validated";
  swamp::SwampGroup group_;
  ServerAccess access_;
};

TEST_F(SwampWorkers, BeginAlikeAndProbeAfterTheirFreeTrial) {
  const auto first = make(0);
  const auto second = make(1);
  EXPECT_TRUE(first->replica.parameters().equal(second->replica.parameters()));
  EXPECT_TRUE(first->replica.statistics().equal(second->replica.statistics()));
  for (int cycle = 0; cycle < 2; ++cycle) {
    for (int batch = 0; batch < 3; ++batch) {
      EXPECT_EQ(first->method->before_step(first->replica), StepKind::kTrain);
      EXPECT_EQ(first->method->before_step(first->replica), StepKind::kTrain);  // asked again
      first->replica.begin_step();
      first->replica.finish_backward();
      first->method->update(first->replica, {first->step++, 0});
    }
    EXPECT_EQ(first->method->before_step(first->replica), StepKind::kProbe);
    first->method->update(first->replica, {first->step++, 0, 1.0});
  }
}

TEST_F(SwampWorkers, TakeTheBestModelAndKeepTheirMomentum) {
  const auto first = make(0);
  const auto second = make(1);
  first->become(0.5F);
  first->probe(0.5);  // the first probe of all is always better
  wait_for_version(1);
  second->become(2);
  second->probe(0.1);  // so is its own first; it is no better to the server
  at::Tensor momentum = second->replica.slots().at(0);
  for (int tries = 0; tries < 100 && second->value() != 0.5F; ++tries) {
    momentum.fill_(7);
    second->probe(5);
  }
  EXPECT_EQ(second->value(), 0.5F);
  EXPECT_EQ(second->replica.statistics()[0].item<float>(), 100.5F);
  EXPECT_GT(momentum[0].item<float>(), 0);  // decayed by the batches since, not replaced
  // What one has already is not taken again.
  second->become(3);
  second->probe(5);
  EXPECT_EQ(second->value(), 3);
}

TEST_F(SwampWorkers, CrossTheirModelWithTheBestOne) {
  const auto first = make(0, 1, 1);
  const auto second = make(1, 1, 1);
  first->become(0.5F);
  first->probe(0.5);
  wait_for_version(1);
  second->become(2);
  second->probe(0.1);
  for (int tries = 0; tries < 100 && second->value() == 2; ++tries) second->probe(5);
  EXPECT_EQ(second->value(), 1.25F);  // the mean of both
  EXPECT_EQ(second->replica.statistics()[0].item<float>(), 101.25F);
}

TEST_F(SwampWorkers, NeverPullWithoutProbability) {
  const auto first = make(0, 0);
  const auto second = make(1, 0);
  first->become(0.5F);
  first->probe(0.5);
  wait_for_version(1);
  second->become(2);
  second->probe(0.1);
  for (int tries = 0; tries < 20; ++tries) second->probe(5);
  EXPECT_EQ(second->value(), 2);
}

TEST_F(SwampWorkers, AreNotKeptFromOfferingByOneLuckyBatch) {
  const auto first = make(0, 0);
  const auto second = make(1, 0);
  first->become(2);
  first->probe(0.001);  // what the server finds is 2.2
  wait_for_version(1);
  first->become(1);
  // A loss that is higher than the lucky one but lower than what the model was found to be worth.
  for (int tries = 0; tries < 100 && group_.accepted().size() < 2; ++tries) first->probe(1.5);
  wait_for_version(2);
  EXPECT_EQ(group_.accepted().back().second, 1);
}

TEST_F(SwampWorkers, AreKeptFromItForEverByTheOldServer) {
  policy_ = "latest";
  const auto first = make(0, 0);
  const auto second = make(1, 0);
  first->become(2);
  first->probe(0.001);
  wait_for_version(1);
  first->become(1);
  for (int tries = 0; tries < 20; ++tries) first->probe(0.5);
  EXPECT_EQ(group_.accepted().size(), 1U);
}

TEST_F(SwampWorkers, EndWithTheBestModelThatAnybodyHad) {
  auto first = make(0, 0);
  auto second = make(1, 0);
  first->become(3);
  first->probe(3);
  second->become(0.25F);
  second->probe(9);
  second->method->finish(second->replica, Ending::kComplete);
  second.reset();
  first->method->finish(first->replica, Ending::kComplete);
  EXPECT_EQ(first->value(), 0.25F);
}

TEST_F(SwampWorkers, OfferWhatTheyHaveAtTheEnd) {
  auto first = make(0, 0);
  auto second = make(1, 0);
  first->become(3);
  first->probe(3);
  second->become(2);
  second->probe(2);
  // Trained on after its last probe.
  second->become(1);
  second->replica.begin_step();
  second->replica.finish_backward();
  second->method->update(second->replica, {second->step++, 0});
  second->method->finish(second->replica, Ending::kComplete);
  second.reset();
  first->method->finish(first->replica, Ending::kComplete);
  EXPECT_EQ(first->value(), 1);
}

TEST(FlatModel, HoldsParametersAndStatistics) {
  TinyModel model(3);
  Replica replica(model, {});
  TinyModel other_model(4);
  Replica other(other_model, {});
  std::vector<float> values(static_cast<std::size_t>(flat_size(replica)));
  EXPECT_EQ(flat_size(replica), replica.parameters().numel() + replica.statistics().numel());
  copy_model_to(values, replica);
  ASSERT_FALSE(other.parameters().equal(replica.parameters()));
  copy_model_from(values, other);
  EXPECT_TRUE(other.parameters().equal(replica.parameters()));
  EXPECT_TRUE(other.statistics().equal(replica.statistics()));
}

}  // namespace
}  // namespace cohort::methods
