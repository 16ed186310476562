#include "comm/diagnosis/wrong_size.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "error_text.h"

namespace catena::comm {
namespace {

// What srun gave this process.
class WrongSize : public ::testing::Test {
 protected:
  WrongSize() { clear(); }
  ~WrongSize() override { clear(); }
  static void clear() {
    for (const char* name : {"SLURM_MPI_TYPE", "PMIX_RANK", "PMI_RANK", "SLURM_STEP_ID",
                             "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"})
      unsetenv(name);
  }
  LaunchEnvironment slurm_{.size = 4, .launched = true, .source = "SLURM_STEP_NUM_TASKS"};
};

constexpr char kMpich[] = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 2022";
constexpr char kOpenMpi[] = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4";

// MPICH does not notice that it is started by PMIx.
TEST_F(WrongSize, SingletonsOfSlurm) {
  setenv("SLURM_MPI_TYPE", "pmix", 1);
  setenv("PMIX_RANK", "2", 1);
  expect_contains(describe_wrong_size(slurm_, 1, kMpich),
                  {"mpi: SLURM_STEP_NUM_TASKS says that the job has 4 ranks, but MPI sees 1. Every "
                   "task runs alone: srun used --mpi=pmix and set PMIX_RANK, through which MPICH "
                   "Version: 4.0.2 did not find the others. Use srun --mpi=pmi2 (srun --mpi=list"});
  clear();
  expect_contains(describe_wrong_size(slurm_, 1, kOpenMpi),
                  {"srun used no --mpi, through which Open MPI v4.1.4 did not", "--mpi=pmix ("});
}

TEST_F(WrongSize, OtherLaunchers) {
  const LaunchEnvironment launch{.size = 4, .launched = true, .source = "CATENA_SIZE"};
  expect_contains(describe_wrong_size(launch, 1, kMpich),
                  {"CATENA_SIZE says", "not started by the mpirun of the MPI library"});
  // catena-run by srun, and by mpirun, whose daemon is a task of srun.
  for (const char* name : {"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})
    setenv(name, "2", 1);
  expect_contains(describe_wrong_size(launch, 1, kMpich),
                  {"CATENA_SIZE says", "for catena-run: --srun-args --mpi=pmi2"});
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  expect_contains(describe_wrong_size(launch, 1, kMpich), {"not started by the mpirun"});
  expect_contains(describe_wrong_size(launch, 2, kMpich), {"MPI sees 2; start the program with"});
}

// Open MPI ends the process itself, with words about how it was built.
TEST_F(WrongSize, MissingConnection) {
  expect_contains(describe_missing_connection(slurm_, kOpenMpi),
                  {"mpi: srun used no --mpi, and Open MPI v4.1.4 needs --mpi=pmix to connect the 4 "
                   "tasks. If MPI fails to start now, use srun --mpi=pmix"});
  expect_contains(describe_missing_connection(slurm_, kMpich), {"needs --mpi=pmi2"});
  for (const char* name : {"PMIX_RANK", "PMI_RANK"}) {
    setenv(name, "0", 1);
    EXPECT_EQ(describe_missing_connection(slurm_, kOpenMpi), "") << "there is " << name;
    clear();
  }
  const LaunchEnvironment one{.launched = true, .source = "SLURM_STEP_NUM_TASKS"};
  EXPECT_EQ(describe_missing_connection(one, kOpenMpi), "") << "one task";
  const LaunchEnvironment other{.size = 2, .launched = true, .source = "PMI_SIZE"};
  EXPECT_EQ(describe_missing_connection(other, kMpich), "");
}

TEST_F(WrongSize, KindOfMpi) {
  EXPECT_STREQ(slurm_mpi_kind(kMpich), "pmi2");
  EXPECT_STREQ(slurm_mpi_kind("Intel(R) MPI Library 2021.10"), "pmi2");
  EXPECT_STREQ(slurm_mpi_kind(kOpenMpi), "pmix");
}

}  // namespace
}  // namespace catena::comm
