#include "dialects/paddle_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "dialects/paddle_models.h"

namespace cohort::dialects {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string paddle_refusal(const std::string& method, const Variables& variables) {
  try {
    find_paddle_cluster(method, variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

// The published commands: 4 servers and 4 trainers.
const Variables kServer = {
    {"PADDLE_TRAINING_ROLE", "PSERVER"},
    {"PADDLE_TRAINERS", "4"},
    {"PADDLE_PSERVER_IPS", "192.168.0.100,192.168.0.101,192.168.0.102,192.168.0.103"},
    {"PADDLE_CURRENT_IP", "192.168.0.102"},
    {"PADDLE_PSERVER_PORT", "7164"}};
const Variables kLastTrainer = {
    {"PADDLE_TRAINING_ROLE", "TRAINER"},
    {"PADDLE_TRAINERS", "4"},
    {"PADDLE_PSERVER_IPS", "192.168.0.100,192.168.0.101,192.168.0.102,192.168.0.103"},
    {"PADDLE_TRAINER_ID", "3"},
    {"PADDLE_PSERVER_PORT", "7164"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(PaddleCluster, ThePublishedServersFindTheirPlaces) {
  const PaddleCluster server = find_paddle_cluster("pserver", kServer);
  EXPECT_EQ(server.method, PaddleMethod::kServers);
  EXPECT_TRUE(server.is_server);
  EXPECT_EQ(server.index, 2);
  EXPECT_EQ(server.trainers, 4);
  EXPECT_THAT(server.servers, ElementsAre("192.168.0.100:7164", "192.168.0.101:7164",
                                          "192.168.0.102:7164", "192.168.0.103:7164"));
}

TEST(PaddleCluster, ThePublishedTrainersFindTheServers) {
  const PaddleCluster trainer = find_paddle_cluster("pserver", kLastTrainer);
  EXPECT_FALSE(trainer.is_server);
  EXPECT_EQ(trainer.index, 3);
  EXPECT_EQ(trainer.servers.size(), 4U);
  EXPECT_EQ(find_paddle_cluster("pserver", without(kLastTrainer, "PADDLE_PSERVER_PORT")).servers[0],
            "192.168.0.100:6174");
}

TEST(PaddleCluster, TheLaterNamesSayTheSame) {
  const Variables server = {{"TRAINING_ROLE", "PSERVER"},
                            {"PADDLE_TRAINERS_NUM", "2"},
                            {"PADDLE_PSERVER_ENDPOINTS", "127.0.0.1:7160,127.0.0.1:7161"},
                            {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:7161"}};
  const PaddleCluster second = find_paddle_cluster("pserver", server);
  EXPECT_TRUE(second.is_server);
  EXPECT_EQ(second.index, 1);
  EXPECT_EQ(second.trainers, 2);
  const Variables pod = {{"PADDLE_TRAINING_ROLE", "PSERVER"},
                         {"PADDLE_TRAINERS", "2"},
                         {"PADDLE_PSERVER_IPS", "10.0.0.1,10.0.0.2"},
                         {"POD_IP", "10.0.0.2"}};
  EXPECT_EQ(find_paddle_cluster("pserver", pod).index, 1);
}

TEST(PaddleCluster, ServersOfOneHostDifferByAddressOrByPort) {
  Variables loopback = with(kServer, "PADDLE_PSERVER_IPS", "127.0.0.1,127.0.0.2,127.0.0.3");
  loopback["PADDLE_CURRENT_IP"] = "127.0.0.3";
  EXPECT_EQ(find_paddle_cluster("pserver", loopback).index, 2);
  EXPECT_THAT(paddle_refusal("pserver", with(kServer, "PADDLE_PSERVER_IPS", "127.0.0.1,127.0.0.1")),
              HasSubstr("PADDLE_PSERVER_ENDPOINTS=127.0.0.1:7164,127.0.0.1:7165"));
  EXPECT_THAT(paddle_refusal("pserver", with(kServer, "PADDLE_PSERVER_ENDPOINTS", "a:1,a:1")),
              HasSubstr("PADDLE_PSERVER_ENDPOINTS has a:1 twice"));
}

TEST(PaddleCluster, CollectiveTrainersKnowEachOther) {
  const Variables variables = {{"PADDLE_TRAINING_ROLE", "TRAINER"},
                               {"PADDLE_TRAINERS", "4"},
                               {"PADDLE_TRAINER_IPS", "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4"},
                               {"PADDLE_TRAINER_ID", "1"}};
  for (const char* method : {"nccl2", "pserver"}) {  // the published example writes pserver
    const PaddleCluster trainer = find_paddle_cluster(method, variables);
    EXPECT_EQ(trainer.method, PaddleMethod::kCollective);
    EXPECT_EQ(trainer.index, 1);
    EXPECT_EQ(trainer.trainers, 4);
    EXPECT_EQ(trainer.trainers_at[3], "10.0.0.4:6174");
  }
  EXPECT_THAT(find_paddle_cluster("pserver", variables).notes,
              Contains(HasSubstr("taken as --update_method nccl2")));
  EXPECT_THAT(find_paddle_cluster("nccl2", variables).notes, IsEmpty());
  EXPECT_THAT(paddle_refusal("nccl2", with(variables, "PADDLE_TRAINERS", "3")),
              HasSubstr("3 trainers by PADDLE_TRAINERS or PADDLE_TRAINERS_NUM, but 4 addresses"));
  EXPECT_THAT(paddle_refusal("nccl2", with(variables, "PADDLE_TRAINING_ROLE", "PSERVER")),
              HasSubstr("nccl2 has no servers"));
  const PaddleCluster later = find_paddle_cluster(
      "nccl2", {{"PADDLE_TRAINER_ENDPOINTS", "a:1,b:2"}, {"PADDLE_TRAINER_ID", "0"}});
  EXPECT_EQ(later.trainers, 2);
  EXPECT_EQ(find_paddle_cluster("nccl2", {}).trainers, 1);
}

TEST(PaddleCluster, LocalTrainingNeedsNoVariables) {
  EXPECT_EQ(find_paddle_cluster("local", {}).method, PaddleMethod::kLocal);
  EXPECT_THAT(find_paddle_cluster("local", {{"PADDLE_TRAINERS", "4"}}).notes,
              Contains(HasSubstr("trains alone")));
  EXPECT_THAT(paddle_refusal("local", {{"PADDLE_TRAINING_ROLE", "PSERVER"}}),
              HasSubstr("--update_method is local"));
}

TEST(PaddleCluster, NamesTheVariableThatIsMissingOrWrong) {
  EXPECT_THAT(paddle_refusal("pserver", {}), HasSubstr("PADDLE_PSERVER_IPS="));
  EXPECT_THAT(paddle_refusal("pserver", without(kLastTrainer, "PADDLE_TRAINERS")),
              HasSubstr("number of trainers: PADDLE_TRAINERS"));
  EXPECT_THAT(paddle_refusal("pserver", with(kLastTrainer, "PADDLE_TRAINERS", "four")),
              HasSubstr("PADDLE_TRAINERS must be a number from 1"));
  EXPECT_THAT(paddle_refusal("pserver", without(kLastTrainer, "PADDLE_TRAINER_ID")),
              HasSubstr("PADDLE_TRAINER_ID, from 0 to 3"));
  EXPECT_THAT(paddle_refusal("pserver", with(kLastTrainer, "PADDLE_TRAINER_ID", "4")),
              HasSubstr("PADDLE_TRAINER_ID must be a number from 0 to 3, it is '4'"));
  EXPECT_THAT(paddle_refusal("pserver", with(kLastTrainer, "PADDLE_TRAINING_ROLE", "trainer")),
              HasSubstr("must be PSERVER or TRAINER, it is 'trainer'"));
  EXPECT_THAT(paddle_refusal("pserver", with(kLastTrainer, "PADDLE_PSERVER_PORT", "70000")),
              HasSubstr("PADDLE_PSERVER_PORT must be a number from 1 to 65535"));
  EXPECT_THAT(paddle_refusal("pserver", with(kServer, "PADDLE_CURRENT_IP", "10.0.0.1")),
              HasSubstr("this PSERVER is 10.0.0.1:7164"));
  EXPECT_THAT(paddle_refusal("pserver", without(kServer, "PADDLE_CURRENT_IP")),
              HasSubstr("needs PADDLE_CURRENT_IP"));
  EXPECT_THAT(paddle_refusal("nccl", {}), HasSubstr("did you mean 'nccl2'?"));
}

TEST(PaddleModels, BothNamesMeanTheSame) {
  const std::vector<std::string> ours = {"resnet20", "resnet50", "dist_resnet50", "vgg16"};
  EXPECT_EQ(paddle_model("ResNet50", ours), "resnet50");
  EXPECT_EQ(paddle_model("resnet20", ours), "resnet20");
  EXPECT_EQ(paddle_model("DistResnet", ours), "dist_resnet50");
  EXPECT_EQ(paddle_model("VGG16", ours), "vgg16");
  try {
    paddle_model("InceptionV4", ours);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown --model 'InceptionV4'"));
    EXPECT_THAT(error.what(), HasSubstr("SE_ResNeXt50_32x4d"));
    EXPECT_THAT(error.what(), HasSubstr("resnet20"));
  }
}

}  // namespace
}  // namespace cohort::dialects
