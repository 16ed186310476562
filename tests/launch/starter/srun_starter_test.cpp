#include "starter/srun_starter.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "environment_scope.h"
#include "error_text.h"
#include "launch/variables.h"
#include "temp_folder.h"

namespace catena::launch {
namespace {

// A PATH whose srun and mpirun answer as they do where they are installed.
class SrunStarterTest : public ::testing::Test {
 protected:
  SrunStarterTest() { write("mpirun", "echo 'mpirun (Open MPI) 4.1.6'"); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  void install_srun(const std::string& kinds) const {
    write("srun",
          "case $1 in --version) echo slurm 23.11.4 ;; *) printf 'MPI plugin types "
          "are...\\n" +
              kinds + "' ;; esac");
  }
  static std::string name_for(const JobSpec& job) { return choose_starter(job)->terms().name; }
  static std::string error_of(const JobSpec& job) {
    return ::error_of<UserError>([&] { choose_starter(job)->check(); });
  }

  const TempFolder folder_;
  const EnvironmentScope environment_{"PATH", folder_.path()};
};

TEST_F(SrunStarterTest, IsChosenInAnAllocationWithPmix) {
  install_srun("none\\npmix\\n");
  JobSpec job;
  {
    const SlurmEnvironment outside({});
    EXPECT_EQ(name_for(job), "mpirun");
  }
  const SlurmEnvironment inside(batch_script());
  EXPECT_EQ(name_for(job), "srun");
  EXPECT_EQ(choose_starter(job)->check(),
            "Slurm 23.11.4, " + folder_.path() + "/srun, MPI through: pmix");
  job.starter = "mpirun";
  EXPECT_EQ(name_for(job), "mpirun");
  job.starter = "";
  job.mpi_args = {"--mca", "btl", "self,tcp"};
  EXPECT_EQ(name_for(job), "mpirun") << "arguments for it were given";
  job.mpi_args.clear();
  job.hosts = {{"h1", 2}};
  EXPECT_EQ(name_for(job), "mpirun");
}

// Open MPI, whose mpirun is there, would find nothing in pmi2.
TEST_F(SrunStarterTest, IsNotChosenWithoutPmix) {
  const SlurmEnvironment inside(batch_script());
  EXPECT_EQ(name_for({}), "mpirun") << "there is no srun";
  install_srun("none\\npmi2\\n");
  EXPECT_EQ(name_for({}), "mpirun");
  JobSpec job;
  job.srun_args = {"--mpi=pmi2"};
  EXPECT_EQ(name_for(job), "srun");
  std::filesystem::remove(folder_ / "mpirun");
  EXPECT_EQ(name_for({}), "srun");
}

// A wrapper of the site, say, whose module is not loaded.
TEST_F(SrunStarterTest, IsNotChosenWhenItDoesNotWork) {
  const SlurmEnvironment inside(batch_script());
  write("srun", "echo 'no module slurm' >&2; exit 1");
  EXPECT_EQ(name_for({}), "mpirun");
  std::filesystem::remove(folder_ / "mpirun");
  EXPECT_EQ(name_for({}), "srun");
  EXPECT_EQ(error_of({}),
            "'" + folder_.path() + "/srun --version' does not answer as Slurm's srun does");
}

// Slurm's mixture of two kinds makes Open MPI crash at the start now and then.
TEST_F(SrunStarterTest, ChoosesOneKindOfBarrierUnlessTheUserDid) {
  install_srun("pmix\\n");
  const auto fence_of = [](const JobSpec& job) {
    const auto starter = choose_starter(job);
    starter->check();
    std::string found = "not set";
    for (const EnvSetting& setting : starter->command(job).environment)
      if (setting.name == "SLURM_PMIX_FENCE") found = setting.value.value_or("hidden");
    return found;
  };
  JobSpec job;
  {
    const SlurmEnvironment inside(batch_script());
    EXPECT_EQ(fence_of(job), "tree");
    job.env = {{"SLURM_PMIX_FENCE", "mixed"}};
    EXPECT_EQ(fence_of(job), "not set") << "--env hands it on";
  }
  job.env.clear();
  auto variables = batch_script();
  variables["SLURM_PMIX_FENCE"] = "ring";
  const SlurmEnvironment chosen(variables);
  EXPECT_EQ(fence_of(job), "not set") << "srun inherits it";
}

TEST_F(SrunStarterTest, WhatDoesNotGoTogether) {
  install_srun("pmix\\n");
  JobSpec job;
  job.starter = "srun";
  {
    const SlurmEnvironment outside({});
    EXPECT_TRUE(error_of(job).starts_with(
        "--starter srun: there is no allocation of Slurm here (SLURM_JOB_ID is not set); get one"));
  }
  const SlurmEnvironment inside(batch_script());
  EXPECT_EQ(error_of(job), "no error");
  job.hosts = {{"h1", 2}};
  EXPECT_TRUE(error_of(job).starts_with("--starter srun takes its hosts from the allocation"));
  job.hosts.clear();
  job.mpi_args = {"--mca"};
  EXPECT_TRUE(error_of(job).starts_with("--mpi-args is for mpirun, and this job is started by"));
  job.mpi_args.clear();
  job.starter = "mpirun";
  job.srun_args = {"--mpi=pmi2"};
  EXPECT_TRUE(error_of(job).starts_with("--srun-args is for srun, and this job is started by"));
}

// Whoever waited for an srun that does not end would not read what it still has to write.
TEST_F(SrunStarterTest, IsAskedToEndWithoutAWait) {
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    signal(SIGTERM, SIG_IGN);
    pause();
    _exit(0);
  }
  setpgid(child, child);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_GT(SrunStarter().end(child), 1) << "seconds for srun to end its tasks";
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(SrunStarterTest, GivesOpenMpiTheNetworks) {
  install_srun("pmix\\n");
  VariableMap map = batch_script();
  map["SLURM_LABELIO"] = "1";
  const SlurmEnvironment inside(map);
  JobSpec job;
  job.ranks = 4;
  job.program = {"p"};
  job.network.leaves_host = true;
  job.network.bridges = {"docker0"};
  SrunStarter starter;
  starter.check();
  const StartCommand command = starter.command(job);
  EXPECT_EQ(command.path, folder_ / "srun");
  EXPECT_EQ(command.environment,
            (std::vector<EnvSetting>{{"OMPI_MCA_btl_tcp_if_exclude", "127.0.0.1/8,sppp,docker0"},
                                     {"SLURM_PMIX_FENCE", "tree"},
                                     {"SLURM_LABELIO", std::nullopt}}));
}

}  // namespace
}  // namespace catena::launch
