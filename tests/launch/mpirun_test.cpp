#include "launch/mpirun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "launch/hosts_file.h"

namespace cohort::launch {
namespace {

using testing::HasSubstr;

class Launch : public testing::Test {
 protected:
  Launch() {
    folder_ = std::filesystem::temp_directory_path() /
              ("cohort-launch-" + std::to_string(::getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_ / "bin");
    host_.search_path = "/nonexistent::" + (folder_ / "bin").string();
    host_.slots = 4;
    request_.program = "/opt/cohort";
    request_.processes = 2;
    request_.arguments = {"train", "--model", "lenet"};
  }
  ~Launch() override {
    for (const auto& name : {"bin/mpirun", "bin/srun", "bin", "hosts", ""}) {
      std::error_code ignored;
      std::filesystem::remove(folder_ / name, ignored);
    }
  }

  void install(const std::string& name) {
    const auto path = folder_ / "bin" / name;
    std::ofstream(path) << "#!/bin/sh\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  std::string hosts(const std::string& content) {
    std::ofstream(folder_ / "hosts") << content;
    return (folder_ / "hosts").string();
  }

  std::string line() { return quoted(launch_command(request_, host_).arguments); }

  std::string refusal() {
    try {
      line();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_;
  LaunchRequest request_;
  LaunchHost host_;
};

TEST_F(Launch, BuildsTheWholeCommand) {
  install("mpirun");
  const std::string bin = (folder_ / "bin").string();
  EXPECT_EQ(line(),
            bin + "/mpirun -n 2 --bind-to none /opt/cohort train --model lenet --engine mpi");

  host_.root = true;
  host_.variables = {"COHORT_DATA_DIR", "HOME", "OMPI_MCA_x", "OMP_NUM_THREADS",
                     "OPENBLAS_CORETYPE"};
  request_.oversubscribe = true;
  request_.hosts_file = hosts("a slots=1\n");
  request_.agent = "reach it";
  EXPECT_EQ(line(), bin + "/mpirun --allow-run-as-root -n 2 --hostfile " + request_.hosts_file +
                        " --oversubscribe --bind-to none --mca plm_rsh_agent 'reach it'"
                        " -x COHORT_DATA_DIR -x OMP_NUM_THREADS -x OPENBLAS_CORETYPE"
                        " /opt/cohort train --model lenet --engine mpi");
}

TEST_F(Launch, LetsSshNeitherAskNorWaitForLong) {
  install("mpirun");
  request_.hosts_file = hosts("a slots=2\n");
  EXPECT_THAT(line(), HasSubstr("plm_rsh_args '-o BatchMode=yes -o ConnectTimeout=10'"));
}

TEST_F(Launch, KeepsTheEngineThatTheCommandNames) {
  install("mpirun");
  request_.arguments = {"train", "--engine", "tcp"};
  EXPECT_THAT(line(), testing::EndsWith("train --engine tcp"));
  request_.arguments = {"train", "--engine=mpi"};
  EXPECT_THAT(line(), testing::EndsWith("train --engine=mpi"));
  request_.arguments = {"bench", "all-reduce"};
  EXPECT_THAT(line(), testing::EndsWith("bench all-reduce"));
  request_.arguments = {"train", "--engine=threads"};
  EXPECT_THAT(refusal(), HasSubstr("needs no launcher"));
  request_.arguments = {"train", "--engine", "nccl"};
  EXPECT_THAT(refusal(), HasSubstr("needs no launcher"));
  request_.arguments = {"train"};
  request_.engine = "threads";
  EXPECT_THAT(refusal(), HasSubstr("needs no launcher"));
}

TEST_F(Launch, SaysWhatToInstallWithoutALauncher) {
  EXPECT_THAT(refusal(), HasSubstr("apt install openmpi-bin"));
  EXPECT_THAT(refusal(), HasSubstr("--engine threads --workers 2"));
  install("srun");
  EXPECT_THAT(refusal(), HasSubstr("mpirun is not on the PATH"));
  request_.launcher = "srun";
  EXPECT_THAT(refusal(), HasSubstr("needs a Slurm allocation"));
  request_.launcher = "mpriun";
  EXPECT_THAT(refusal(), HasSubstr("did you mean 'mpirun'"));
}

TEST_F(Launch, UsesSrunWithinAnAllocationThatHasNoMpirun) {
  install("srun");
  host_.in_slurm = true;
  request_.processes = 100;  // Slurm knows how many there are
  EXPECT_EQ(line(), (folder_ / "bin/srun").string() +
                        " -n 100 --kill-on-bad-exit=1 --cpu-bind=none /opt/cohort train --model "
                        "lenet --engine mpi");
  request_.hosts_file = hosts("a slots=200\n");
  EXPECT_THAT(refusal(), HasSubstr("leave out --hosts"));
}

TEST_F(Launch, RefusesMoreProcessesThanSlots) {
  install("mpirun");
  host_.slots = 2;
  request_.processes = 4;
  EXPECT_EQ(refusal(), "-n 4 but 2 slots: give --oversubscribe, or more slots in --hosts FILE");
  request_.oversubscribe = true;
  EXPECT_EQ(refusal(), "");
  request_.oversubscribe = false;
  request_.hosts_file = hosts("# ours\n\na slots=1  # small\nb slots=2 max_slots=4\n");
  EXPECT_THAT(refusal(), HasSubstr("-n 4 but 3 slots"));
  request_.hosts_file = hosts("a slots=1\nb\n");  // b has as many as it has cores
  EXPECT_EQ(refusal(), "");
  request_.processes = 0;
  EXPECT_THAT(refusal(), HasSubstr("at least 1"));
}

TEST_F(Launch, NamesTheBadLineOfAHostsFile) {
  install("mpirun");
  for (const auto& [content, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"", "no host"},
           {"# nothing\n\n", "no host"},
           {"a slots=2\nb slots=two\n", ":2: 'slots=two'"},
           {"a slots=0\n", ":1: 'slots=0'"},
           {"a 2\n", ":1: cannot read '2'"},
           {"a\n\n$(b) slots=1\n", ":3: '$(b)' is not a host's name"},
           {"-oProxyCommand=x slots=1\n", ":1: "}}) {
    request_.hosts_file = hosts(content);
    EXPECT_THAT(refusal(), HasSubstr(wanted)) << content;
  }
  request_.hosts_file = (folder_ / "missing").string();
  EXPECT_THROW(line(), FileError);
  request_.hosts_file = folder_.string();
  EXPECT_THROW(line(), FileError);
}

TEST_F(Launch, QuotesWhatAShellWouldSplit) {
  EXPECT_EQ(quoted({"a", "b c", "", "it's"}), "a 'b c' '' 'it'\\''s'");
}

TEST(LocalSlots, AreAtLeastOneAndNoMoreThanTheThreads) {
  EXPECT_GE(local_slots(), 1);
  EXPECT_LE(local_slots(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace cohort::launch
