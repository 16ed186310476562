#include "starter/mpirun_starter.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/text.h"
#include "environment_scope.h"
#include "launch/variables.h"
#include "temp_folder.h"

namespace catena::launch {
namespace {

TEST(MpirunStarterTest, IsWhatJobsAreStartedWith) {
  const SlurmEnvironment outside({});
  const auto starter = choose_starter(JobSpec{});
  EXPECT_EQ(starter->terms().name, "mpirun");
  EXPECT_EQ(starter->needs().name, "mpirun");
}

TEST(MpirunStarterTest, MakesTheCommandOfAJob) {
  const TempFolder folder;
  const std::string mpirun = folder / "mpirun";
  write_file(mpirun, "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.6'\n");
  std::filesystem::permissions(mpirun, std::filesystem::perms::owner_all);
  JobSpec job;
  job.mpirun = mpirun;
  job.ranks = 2;
  job.network.leaves_host = job.remote = true;
  job.hosts = {{"a", 1}, {"b", 1}};
  job.network.shared = {"10.1.0.0/16"};
  job.program = {"p"};
  const auto starter = choose_starter(job);
  EXPECT_EQ(starter->check(), "Open MPI 4.1.6, " + mpirun);
  starter->prepare(job);
  const StartCommand command = starter->command(job);
  EXPECT_EQ(command.path, mpirun);
  const std::string line = join(command.words, " ");
  EXPECT_TRUE(line.starts_with(mpirun + " --allow-run-as-root -n 2 ")) << line;
  EXPECT_EQ(line.find("tmpdir_base"), std::string::npos) << "on other hosts nobody removes it";
  EXPECT_TRUE(starter->describe_network(job).starts_with("10.1.0.0/16, where the names"));
  job.remote = false;
  job.hosts.clear();
  starter->prepare(job);
  EXPECT_NE(join(starter->command(job).words, " ").find("tmpdir_base"), std::string::npos);
  EXPECT_EQ(starter->describe_network(job), "");
}

TEST(MpirunStarterTest, WaitStatus) {
  const auto starter = choose_starter(JobSpec{});
  EXPECT_EQ(starter->exit_code(3 << 8), 3);
  EXPECT_EQ(starter->exit_code(SIGKILL), -SIGKILL);
}

TEST(MpirunStarterTest, DoesNotNest) {
  const SlurmEnvironment outside({});
  const auto starter = choose_starter(JobSpec{});
  EXPECT_NO_THROW(starter->refuse_nesting());
  {
    const EnvironmentScope rank("OMPI_COMM_WORLD_RANK", "0");
    EXPECT_THROW(starter->refuse_nesting(), UserError);
  }
  VariableMap map = batch_script();
  map["SLURM_STEP_ID"] = "0";
  map["SLURM_STEP_NUM_TASKS"] = "4";
  const SlurmEnvironment task(map);
  EXPECT_THROW(starter->refuse_nesting(), UserError);
}

}  // namespace
}  // namespace catena::launch
