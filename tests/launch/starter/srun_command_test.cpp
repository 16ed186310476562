#include "starter/srun_command.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "launch/variables.h"

namespace catena::launch {
namespace {

JobSpec example() {
  JobSpec job;
  job.ranks = 4;
  job.by_srun = true;
  job.launcher = "/opt/catena/bin/catena-run";
  job.id = "0123abcd";
  job.program = {"./train", "--epochs", "5"};
  return job;
}

SlurmAllocation two_nodes() { return slurm_allocation(variables_of(batch_script())); }

std::string line_of(const JobSpec& job, const SlurmAllocation& allocation) {
  return join(srun_command(job, allocation, "pmix"), " ");
}

TEST(SrunCommand, Version) {
  EXPECT_EQ(parse_srun_version("slurm-wlm 22.05.8\n"), "22.05.8");
  EXPECT_EQ(parse_srun_version("slurm 24.11.1\n"), "24.11.1");
  EXPECT_EQ(parse_srun_version("srun: error: no configuration\n"), "");
  EXPECT_EQ(parse_srun_version(""), "");
}

TEST(SrunCommand, KindsOfMpi) {
  const auto kinds = parse_mpi_kinds(
      "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
      "specific pmix plugin versions available: pmix_v4\n");
  EXPECT_EQ(kinds, (std::vector<std::string>{"pmix", "cray_shasta", "pmi2"}));
  EXPECT_EQ(choose_mpi_kind(kinds), "pmix");
  const auto older =
      parse_mpi_kinds("srun: MPI types are...\nsrun: pmi2\nsrun: none\nsrun: pmix_v3\n");
  EXPECT_EQ(older, (std::vector<std::string>{"pmi2", "pmix_v3"}));
  EXPECT_EQ(choose_mpi_kind(older), "pmix_v3");
  EXPECT_EQ(choose_mpi_kind({"openmpi", "pmi2"}), "pmi2");
  EXPECT_EQ(choose_mpi_kind({"openmpi"}), "");
}

TEST(SrunCommand, Line) {
  const SlurmEnvironment environment(batch_script());
  EXPECT_EQ(line_of(example(), two_nodes()),
            "srun --ntasks=4 --mpi=pmix --kill-on-bad-exit=1 --wait=0 --cpu-bind=none --input=0 "
            "--export=ALL /opt/catena/bin/catena-run --rank-process job=0123abcd size=4 "
            "devices=auto timeout=300 start-timeout=60 srun=1 -- ./train --epochs 5");
}

// When the allocation has lost a node.
TEST(SrunCommand, SomeNodesAlone) {
  const SlurmEnvironment environment(batch_script());
  JobSpec job = example();
  job.nodes = {"n1", "n3"};
  EXPECT_TRUE(line_of(job, two_nodes())
                  .starts_with("srun --ntasks=4 --nodes=2 --nodelist=n1,n3 --mpi=pmix "))
      << line_of(job, two_nodes());
  EXPECT_NE(line_of(job, two_nodes()).find(" --overlap "), std::string::npos);
  const auto hidden = variables_to_hide(job, two_nodes());
  EXPECT_NE(std::find(hidden.begin(), hidden.end(), "SLURM_JOB_NUM_NODES"), hidden.end());
  job.nodes.clear();
  const auto usual = variables_to_hide(job, two_nodes());
  EXPECT_EQ(std::find(usual.begin(), usual.end(), "SLURM_JOB_NUM_NODES"), usual.end());
}

TEST(SrunCommand, FewerAndMoreRanksThanTasks) {
  const SlurmEnvironment environment(batch_script());
  JobSpec job = example();
  job.ranks = 1;
  const std::vector<std::string> per_node = {"SLURM_NTASKS_PER_NODE"};
  EXPECT_TRUE(line_of(job, two_nodes()).starts_with("srun --ntasks=1 --nodes=1 --mpi"));
  EXPECT_EQ(variables_to_hide(job, two_nodes()), per_node);
  job.ranks = 2;
  EXPECT_TRUE(line_of(job, two_nodes()).starts_with("srun --ntasks=2 --mpi")) << "one a node";
  job.ranks = 5;
  EXPECT_NE(line_of(job, two_nodes()).find(" --overcommit "), std::string::npos);
  EXPECT_EQ(variables_to_hide(job, two_nodes()), per_node);
  job.ranks = 4;
  EXPECT_TRUE(variables_to_hide(job, two_nodes()).empty());
}

TEST(SrunCommand, TheUserChoosesTheKindOfMpi) {
  JobSpec job = example();
  {
    const SlurmEnvironment environment(batch_script());
    job.srun_args = {"--mpi=pmi2", "--nodelist=n2"};
    const std::string line = line_of(job, two_nodes());
    EXPECT_EQ(line.find("--mpi=pmix"), std::string::npos) << line;
    EXPECT_NE(line.find(" --mpi=pmi2 --nodelist=n2 /opt/"), std::string::npos) << line;
  }
  VariableMap map = batch_script();
  map["SLURM_MPI_TYPE"] = "pmi2";
  const SlurmEnvironment environment(map);
  job.srun_args.clear();
  EXPECT_EQ(line_of(job, two_nodes()).find("--mpi"), std::string::npos);
}

TEST(SrunCommand, InsideAShellOfSrun) {
  SlurmAllocation allocation = two_nodes();
  allocation.tasks_of_own_step = 1;
  EXPECT_NE(line_of(example(), allocation).find(" --overlap "), std::string::npos);
  EXPECT_NO_THROW(refuse_to_be_a_task(allocation));
  allocation.tasks_of_own_step = 4;
  EXPECT_THROW(refuse_to_be_a_task(allocation), UserError);
}

// They would tear the blocks in which output travels, or lead it elsewhere.
TEST(SrunCommand, VariablesThatChangeTheOutputAreHidden) {
  VariableMap map = batch_script();
  map["SLURM_LABELIO"] = "1";
  map["SLURM_STDOUTMODE"] = "out-%t";
  const SlurmEnvironment environment(map);
  EXPECT_EQ(variables_to_hide(example(), two_nodes()),
            (std::vector<std::string>{"SLURM_LABELIO", "SLURM_STDOUTMODE"}));
}

TEST(SrunCommand, LoneColonIsHidden) {
  JobSpec job = example();
  job.program = {"prog", ":", "50%", "--mca"};
  const std::vector<std::string> words = srun_command(job, two_nodes(), "pmix");
  EXPECT_EQ(words[words.size() - 3], "%3A");
  EXPECT_EQ(words[words.size() - 2], "50%25");
  EXPECT_EQ(words.back(), "--mca");
}

}  // namespace
}  // namespace catena::launch
