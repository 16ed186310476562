// catena-run where it starts no rank: --dry-run with every option, for both versions of Open MPI,
// and --check.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "error_text.h"
#include "temp_folder.h"

namespace {

struct Result {
  int status = -1;
  std::string out;  // with standard error
};

// Runs a shell command in which CATENA_RUN stands for the program.
Result shell(const std::string& command) {
  Result result;
  FILE* pipe = popen(("exec 2>&1; " + command).c_str(), "r");
  std::array<char, 4096> part;
  while (pipe && std::fgets(part.data(), part.size(), pipe)) result.out += part.data();
  const int status = pipe ? pclose(pipe) : -1;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

// A folder with an mpirun that is of the version given, which is all that --dry-run asks.
class ProgramTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    write_file(folder_ / name, text);
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
    return folder_ / name;
  }
  std::string mpirun(const std::string& answer) const {
    return write("mpirun", "#!/bin/sh\necho '" + answer + "'\n");
  }
  Result dry_run(const std::string& answer, const std::string& options,
                 const std::string& environment = "") const {
    return shell("env -i PATH=/usr/bin:/bin " + environment + " " CATENA_RUN " --mpirun " +
                 mpirun(answer) + " --dry-run " + options);
  }

  const TempFolder folder_;
};

constexpr char kOpenMpi4[] = "mpirun (Open MPI) 4.1.6", kOpenMpi5[] = "mpirun (Open MPI) 5.0.8";

TEST_F(ProgramTest, HostsForOpenMpi4) {
  const Result result = dry_run(kOpenMpi4, "-H h1:4,h2:4 ./train --epochs 5");
  EXPECT_EQ(result.status, 0);
  expect_contains(result.out, {" --allow-run-as-root -n 8 --oversubscribe --map-by slot",
                               " --host h1:4,h2:4 --mca odls_base_sigkill_timeout 1 ",
                               " size=8 devices=auto ", " -- ./train --epochs 5\n"});
}

TEST_F(ProgramTest, HostfileIsTheSameAsAList) {
  const std::string file = write("hosts", "h1 slots=4\nh2 slots=4\n");
  const Result result = dry_run(kOpenMpi4, "--hostfile " + file + " ./train");
  EXPECT_EQ(result.status, 0);
  expect_contains(result.out, {" -n 8 ", " --host h1:4,h2:4 "});
  const Result missing = dry_run(kOpenMpi4, "--hostfile " + file + "2 ./train");
  EXPECT_EQ(missing.status, 2);
  expect_contains(missing.out, {"cannot read hostfile '" + file + "2': No such file"});
}

TEST_F(ProgramTest, GpusAreHandedOnInOrder) {
  const Result result =
      dry_run(kOpenMpi4, "--gpus 0,1,3 --log-dir logs ./train", "CATENA_TEST_GPU_COUNT=4");
  EXPECT_EQ(result.status, 0);
  expect_contains(result.out, {" -n 3 ", " devices=cuda:0,1,3 ", " log-dir=logs "});
  const Result high = dry_run(kOpenMpi4, "--gpus 0,4 ./train", "CATENA_TEST_GPU_COUNT=4");
  EXPECT_EQ(high.status, 2);
  expect_contains(high.out,
                  {"--gpus names GPU 4 but this machine has 4 GPUs, numbered from 0 to 3"});
}

TEST_F(ProgramTest, VariablesAreHandedOn) {
  const Result result =
      dry_run(kOpenMpi4, "--cpu --env HOME --env SEED=1 --env TEXT='b c' ./train",
              "HOME=/root OTHER=x CATENA_LOG=debug NCCL_DEBUG=INFO OMP_NUM_THREADS=2 "
              "CUDA_VISIBLE_DEVICES=0 LD_LIBRARY_PATH=/lib");
  EXPECT_EQ(result.status, 0);
  expect_contains(result.out, {"SEED=1 TEXT='b c' "});
  for (const char* name : {"HOME", "SEED", "TEXT", "CATENA_LOG", "NCCL_DEBUG", "OMP_NUM_THREADS",
                           "CUDA_VISIBLE_DEVICES", "PATH", "LD_LIBRARY_PATH"})
    expect_contains(result.out, {std::string(" -x ") + name + " "});
  EXPECT_EQ(result.out.find("OTHER"), std::string::npos) << result.out;
  const Result unset = dry_run(kOpenMpi4, "--cpu --env NOT_SET ./train");
  EXPECT_EQ(unset.status, 2);
  expect_contains(unset.out, {"--env NOT_SET: the variable is not set; use --env NOT_SET=VALUE"});
}

TEST_F(ProgramTest, Timeouts) {
  expect_contains(dry_run(kOpenMpi4, "--cpu ./train").out, {" timeout=300 start-timeout=60 "});
  expect_contains(dry_run(kOpenMpi4, "--cpu --timeout 2.5 --start-timeout 7 ./train").out,
                  {" timeout=2.5 start-timeout=7 "});
}

TEST_F(ProgramTest, OtherMpisAreRefused) {
  const Result old = dry_run("mpirun (Open MPI) 3.1.4", "--cpu ./train");
  EXPECT_NE(old.status, 0);
  expect_contains(old.out, {"is Open MPI 3.1.4; catena-run speaks Open MPI 4 and 5"});
  const Result mpich = dry_run("HYDRA build details:", "--cpu ./train");
  EXPECT_EQ(mpich.status, 127);
  expect_contains(mpich.out,
                  {"belongs to MPICH, whose jobs catena-run does not start",
                   "apt-get install openmpi-bin libopenmpi-dev, or name it with --mpirun"});
  const Result other = dry_run("Platform MPI 9", "--cpu ./train");
  EXPECT_EQ(other.status, 127);
  expect_contains(other.out,
                  {"does not answer as Open MPI does but 'Platform MPI 9'",
                   "apt-get install openmpi-bin libopenmpi-dev, or name it with --mpirun"});
}

TEST_F(ProgramTest, CheckHasALineForEachThing) {
  const Result result = shell("CATENA_CACHE_DIR=" + folder_.path() +
                              "/cache " CATENA_RUN " --mpirun /nowhere --check");
  EXPECT_EQ(result.status, 1) << "something is missing";
  for (const char* line :
       {"  libcatena  ", "  CPU kernels  ", "  CUDA runtime  ", "  NVRTC  ", "  NCCL  ",
        "\nMISSING  mpirun  ", " libcatena_mpi  ", " libcatena_cuda  ", "\nok       kernel cache  ",
        "0 hits, 0 misses so far, ", " Fashion-MNIST  ", " /dev/shm  ",
        "\nTo install what is missing:\n", "apt-get install ", "openmpi-bin"}) {
    std::string squeezed;  // columns are padded to the longest name
    for (const char c : result.out)
      if (c != ' ' || squeezed.empty() || squeezed.back() != ' ') squeezed += c;
    std::string expected;
    for (const char* c = line; *c != '\0'; ++c)
      if (*c != ' ' || expected.empty() || expected.back() != ' ') expected += *c;
    expect_contains(squeezed, {expected});
  }
}

// The kernels are compiled by another program, which needs a GPU.
TEST_F(ProgramTest, PrepareSaysWhyItCannot) {
  const Result result = shell("CUDA_VISIBLE_DEVICES= CATENA_CACHE_DIR=" + folder_.path() +
                              "/cache " CATENA_RUN " --prepare");
  EXPECT_NE(result.status, 0);
  EXPECT_TRUE(result.out.find("no GPU to prepare kernels for: ") != std::string::npos ||
              result.out.find("this build has no cuda plug-in; build catena") != std::string::npos)
      << result.out;
}

}  // namespace
