#include "launch/environment.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "launch/variables.h"

namespace cohort::launch {
namespace {

std::optional<Place> place_of(const Variables& variables) {
  return detect_place(lookup(variables));
}

std::string refusal_of(const Variables& variables) {
  try {
    place_of(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "5"},
                            {"OMPI_COMM_WORLD_SIZE", "8"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
const Variables kPmi = {
    {"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}};
const Variables kSlurm = {{"SLURM_JOB_ID", "77"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_PROCID", "3"},
                          {"SLURM_NTASKS", "7"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};
const Variables kTorchrun = {{"RANK", "1"},           {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node"}, {"MASTER_PORT", "29500"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables joined(Variables first, const Variables& second) {
  first.insert(second.begin(), second.end());
  return first;
}

TEST(DetectPlace, ReadsEachLauncher) {
  const Place open_mpi = place_of(kOpenMpi).value();
  EXPECT_EQ(open_mpi.source, "Open MPI");
  EXPECT_EQ(open_mpi.rank, 5);
  EXPECT_EQ(open_mpi.size, 8);
  EXPECT_EQ(open_mpi.local_rank, 1);
  EXPECT_EQ(open_mpi.local_size, 4);

  const Place pmi = place_of(kPmi).value();
  EXPECT_EQ(pmi.source, "PMI");
  EXPECT_EQ(pmi.rank, 2);
  EXPECT_EQ(pmi.size, 3);
  EXPECT_EQ(pmi.local_size, 1);

  const Place slurm = place_of(kSlurm).value();
  EXPECT_EQ(slurm.source, "Slurm");
  EXPECT_EQ(slurm.rank, 3);
  EXPECT_EQ(slurm.size, 7);
  EXPECT_EQ(slurm.local_rank, 1);
  EXPECT_EQ(slurm.local_size, 2);

  const Place torchrun = place_of(kTorchrun).value();
  EXPECT_EQ(torchrun.source, "torchrun");
  EXPECT_EQ(torchrun.rank, 1);
  EXPECT_EQ(torchrun.size, 4);
  EXPECT_EQ(torchrun.local_size, 2);
  EXPECT_EQ(torchrun.master_address, "node");
  EXPECT_EQ(torchrun.master_port, 29500);
}

TEST(DetectPlace, PrefersTheInnermostLauncher) {
  // mpirun within a Slurm step, and a RANK left over from another job.
  const Variables all = joined(joined(joined(kOpenMpi, kPmi), kSlurm), kTorchrun);
  EXPECT_EQ(place_of(all)->source, "Open MPI");
  EXPECT_EQ(place_of(joined(joined(kPmi, kSlurm), kTorchrun))->source, "PMI");
  EXPECT_EQ(place_of(joined(kSlurm, kTorchrun))->source, "Slurm");
}

TEST(DetectPlace, FindsNoneWhenStartedByHand) {
  EXPECT_FALSE(place_of({}));
  EXPECT_FALSE(place_of({{"RANK", "3"}}));
  EXPECT_FALSE(place_of({{"OMPI_COMM_WORLD_RANK", "3"}}));
}

TEST(DetectPlace, TakesABatchScriptOfSlurmForNoTask) {
  Variables batch = kSlurm;
  batch.erase("SLURM_STEP_ID");  // as in a script that sbatch runs for 7 tasks
  EXPECT_FALSE(place_of(batch));
  EXPECT_FALSE(place_of(with(with(kSlurm, "SLURM_NTASKS", "1"), "SLURM_PROCID", "0")));
  // The shell of salloc is a step of one task within an allocation of seven.
  EXPECT_FALSE(place_of(with(with(kSlurm, "SLURM_STEP_NUM_TASKS", "1"), "SLURM_PROCID", "0")));
}

TEST(DetectPlace, KnowsWhereEachNodeOfSlurmBegins) {
  const auto tasks_on = [](const std::string& node) {
    Variables variables = with(with(kSlurm, "SLURM_NODEID", node), "SLURM_LOCALID", "0");
    return place_of(variables)->local_size;
  };
  EXPECT_EQ(tasks_on("0"), 2);
  EXPECT_EQ(tasks_on("2"), 2);
  EXPECT_EQ(tasks_on("3"), 1);
  EXPECT_EQ(tasks_on("9"), 0);
  EXPECT_NE(refusal_of(with(kSlurm, "SLURM_STEP_TASKS_PER_NODE", "2(x")).find("TASKS_PER_NODE"),
            std::string::npos);
}

TEST(DetectPlace, NamesTheVariableThatMakesNoSense) {
  for (const auto& [variables, name, value] :
       std::vector<std::tuple<Variables, std::string, std::string>>{
           {kOpenMpi, "OMPI_COMM_WORLD_RANK", "five"},
           {kOpenMpi, "OMPI_COMM_WORLD_RANK", "8"},
           {kOpenMpi, "OMPI_COMM_WORLD_RANK", "-1"},
           {kOpenMpi, "OMPI_COMM_WORLD_SIZE", ""},
           {kOpenMpi, "OMPI_COMM_WORLD_SIZE", "0"},
           {kOpenMpi, "OMPI_COMM_WORLD_LOCAL_RANK", "4"},
           {kPmi, "PMI_SIZE", "3x"},
           {kSlurm, "SLURM_NTASKS", "99999999999999"},
           {kTorchrun, "MASTER_PORT", "70000"},
           {kTorchrun, "LOCAL_WORLD_SIZE", "5"}}) {
    const std::string message = refusal_of(with(variables, name, value));
    EXPECT_NE(message.find(name + "=" + value), std::string::npos) << name << ": " << message;
  }
}

}  // namespace
}  // namespace cohort::launch
