// What catena-run makes sure of before programs run: the world's size, a GPU of its own for every
// rank, the same program on all hosts; and where it puts the ranks.
#include <sched.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "launched.h"
#include "plan/placement.h"

namespace catena::launch::test {
namespace {

// Two hosts of one rank each, as far as names, PATH and environment go. Their programs, both called
// catena-test-program, are found in PATH.
class TwoHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("unshare --uts true 2>/dev/null") != 0)
      GTEST_SKIP() << "SKIPPED: no permission to change the host name of a process";
    std::filesystem::create_directories(folder_ + "/here");
    std::filesystem::create_directories(folder_ + "/there");
    write("mpirun",
          "[ \"$1\" = --version ] && exec mpirun --version\n"
          "while [ \"$1\" != '" CATENA_RUN
          "' ]; do shift; done\n"
          "exec mpirun --allow-run-as-root --oversubscribe --bind-to none -n 1 " +
              folder_ + "/start here \"$@\" : -n 1 " + folder_ + "/start there \"$@\"\n");
    write("start",
          "where=$1; shift\n"
          "export OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1\n"
          "PATH=" +
              folder_ + "/$where:$PATH\n[ -f " + folder_ + "/$where/setup ] && . " + folder_ +
              "/$where/setup\n"
              "[ $where = here ] && exec \"$@\"\n"
              "exec unshare --uts sh -c 'hostname faraway; exec \"$@\"' - \"$@\"\n");
    write("here/catena-test-program", kProgram);
  }

  void write(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  Result start(const Words& options) const {
    const Setting path("PATH", folder_ + "/here:" + std::getenv("PATH"));
    Words words = {"--mpirun", folder_ + "/mpirun", "-H", host() + ":1,faraway:1"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("catena-test-program");
    return run(words);
  }

  static constexpr const char* kProgram = "echo rank $CATENA_RANK of $CATENA_SIZE ran\n";
  const TempFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(TwoHosts, TheSameProgramRuns) {
  write("there/catena-test-program", kProgram);
  const Result result = start({"--cpu"});
  EXPECT_EQ(result.status, 0) << result.err;
  expect_contains(result.out, {"rank 0 of 2 ran\n", "[1] rank 1 of 2 ran\n"});
}

// Of the same size, so that only a look at the bytes tells.
TEST_F(TwoHosts, AnotherProgramIsRefused) {
  write("here/catena-test-program", "sleep 20 # one\n");
  write("there/catena-test-program", "sleep 20 # two\n");
  const Result result = start({"--cpu"});
  EXPECT_EQ(result.status, 1);
  const std::string start_of_line = "catena-run: catena-test-program differs between hosts: ";
  const std::size_t at = result.err.find(start_of_line);
  ASSERT_NE(at, std::string::npos) << result.err;
  // "A has SIZE-HASH, B has SIZE-HASH (size-hash); copy ..."
  std::istringstream words(result.err.substr(at + start_of_line.size()));
  std::string host_a, has, digest_a, host_b, digest_b;
  words >> host_a >> has >> digest_a >> host_b >> has >> digest_b;
  EXPECT_EQ((std::set<std::string>{host_a, host_b}), (std::set<std::string>{host(), "faraway"}));
  digest_a.pop_back();  // the comma
  EXPECT_EQ(digest_a.size(), digest_b.size());
  EXPECT_EQ(digest_a.find("25-"), 0u) << result.err;
  EXPECT_EQ(digest_b.find("25-"), 0u) << result.err;
  EXPECT_NE(digest_a, digest_b);
  expect_contains(result.err, {"copy the same files to all hosts"});
  EXPECT_LT(result.seconds, 15) << "without waiting for the program";
}

TEST_F(TwoHosts, AGpuThatOneHostLacksIsNamed) {
  write("there/catena-test-program", kProgram);
  write("here/setup", "export CATENA_TEST_GPU_COUNT=2\n");
  write("there/setup", "export CATENA_TEST_GPU_COUNT=1\n");
  const Setting gpus("CATENA_TEST_GPU_COUNT", "2");
  const Result result = start({"--gpus", "1"});
  EXPECT_NE(result.status, 0);
  expect_contains(result.err,
                  {"rank 1 on faraway failed first: --gpus names GPU 1 but host faraway "
                   "has 1 GPU"});
}

TEST_F(TwoHosts, AMissingProgramIsNamedWithItsHost) {
  const Setting path("PATH", folder_ + "/here:" + std::getenv("PATH"));
  write("there/setup", "PATH=$(echo $PATH | sed 's@[^:]*/here:@@g')\n");
  const Result result = start({"--cpu"});
  EXPECT_EQ(result.status, 127);
  expect_contains(result.err,
                  {"rank 1 on faraway failed first: cannot start 'catena-test-program' on "
                   "host faraway: No such file or directory"});
}

// Placement ---------------------------------------------------------------------------------------

// What ranks print about themselves: "THREADS CPUS", by rank.
std::vector<std::string> placements(const Words& options, int ranks) {
  Words words = options;
  for (const char* word : {"sh", "-c",
                           "echo $CATENA_RANK: $OMP_NUM_THREADS $(grep Cpus_allowed_list "
                           "/proc/self/status | cut -f 2)"})
    words.emplace_back(word);
  const Result result = run(words);
  EXPECT_EQ(result.status, 0) << result.err;
  std::vector<std::string> found;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string mark = std::to_string(rank) + ": ";
    const std::size_t at = result.out.find(mark);
    EXPECT_NE(at, std::string::npos) << result.out;
    if (at == std::string::npos) return {};
    const std::size_t begin = at + mark.size();
    found.push_back(result.out.substr(begin, result.out.find('\n', begin) - begin));
  }
  return found;
}

int threads_in(const std::string& placement) { return std::atoi(placement.c_str()); }
cpu_set_t cpus_in(const std::string& placement) {
  return parse_cpu_list(placement.substr(placement.find(' ') + 1));
}

TEST(Placement, RanksShareTheCores) {
  unsetenv("OMP_NUM_THREADS");
  for (const int ranks : {1, 2, 3}) {
    for (const std::string& one : placements({"-n", std::to_string(ranks), "--cpu"}, ranks))
      EXPECT_EQ(threads_in(one), std::max(1, usable_cores() / ranks)) << one;
  }
  const Setting mine("OMP_NUM_THREADS", "5");
  for (const std::string& one : placements({"-n", "2", "--cpu"}, 2))
    EXPECT_EQ(threads_in(one), 5) << "the user's own number wins";
}

TEST(Placement, RanksRunNearTheirGpu) {
  const std::string bus = "/sys/bus/pci/devices";
  std::vector<std::string> devices;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(bus, none))
    devices.push_back(entry.path().filename());
  if (devices.empty()) GTEST_SKIP() << "SKIPPED: no PCI device in " << bus;
  std::sort(devices.begin(), devices.end());
  // The first and the last device, which on a machine of two sockets are near different ones.
  const char* old = std::getenv("LD_LIBRARY_PATH");
  const Setting library("LD_LIBRARY_PATH",
                        std::string(FAKE_NVML_FOLDER) + (old ? ":" + std::string(old) : ""));
  const Setting gpus("FAKE_NVML_GPUS", "2"), visible("CUDA_VISIBLE_DEVICES", "0,1"),
      ids("FAKE_NVML_BUS_IDS", "0000" + devices.front() + "," + devices.back());
  const auto expect_near = [&](const std::string& placement, const std::string& device) {
    const cpu_set_t got = cpus_in(placement), expected = cpus_near_gpu(device);
    EXPECT_TRUE(CPU_EQUAL(&got, &expected)) << placement << " near " << device;
  };
  const auto bound = placements({"-n", "2"}, 2);
  ASSERT_EQ(bound.size(), 2u);
  expect_near(bound[0], devices.front());
  expect_near(bound[1], devices.back());
  const auto swapped = placements({"--gpus", "1,0"}, 2);
  ASSERT_EQ(swapped.size(), 2u);
  expect_near(swapped[0], devices.back());
  expect_near(swapped[1], devices.front());
}

TEST(Preflight, MpirunThatDoesNotAnswerCanBeInterrupted) {
  const Script silent("silent-mpirun", "#!/bin/sh\nsleep 100\n");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Launched running({"--mpirun", silent.path(), "-n", "1", "--cpu", "true"});
    running.read_for(0.3);
    kill(running.pid(), signal);
    const Result result = running.finish();
    EXPECT_EQ(result.status, 128 + signal);
    EXPECT_LT(result.seconds, 15);
    expect_contains(result.err, {"--version' did not answer"});
  }
}

TEST(Preflight, DevicesAreNoPrograms) {
  const Result result = run({"-n", "1", "--cpu", "/dev/null"});
  EXPECT_EQ(result.status, 126);
  expect_contains(result.err, {"'/dev/null' is a device"});
}

// mpirun takes 128 KiB for all words together.
TEST(Preflight, ManyArgumentsReachTheProgram) {
  for (const auto& [count, size] : {std::pair{700, 1000}, {1, 131000}, {20000, 60}}) {
    Words words = {"-n",    "2",
                   "--cpu", "sh",
                   "-c",    "echo $# ${#1} \"$2\" && echo ${#1} >&2",
                   "sh",    std::string(std::size_t(size), 'x'),
                   "a b"};
    words.insert(words.end(), std::size_t(count), std::string(std::size_t(size), 'x'));
    const Result result = run(words);
    EXPECT_EQ(result.status, 0) << result.err;
    expect_contains(result.out,
                    {std::to_string(count + 2) + " " + std::to_string(size) + " a b\n"});
  }
}

TEST(Preflight, AWorkingFolderThatIsGoneIsNamed) {
  const std::filesystem::path before = std::filesystem::current_path();
  {
    const TempFolder gone;
    std::filesystem::current_path(gone.path());
  }
  const Result result = run({"-n", "2", "--cpu", "true"});
  std::filesystem::current_path(before);
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(result.err.starts_with("catena-run: the working folder cannot be used: No such file"))
      << result.err;
}

// mpirun and the programs look where a shell would, without PATH too.
TEST(Preflight, NoVariablesAreNeeded) {
  const int status = std::system("env -i " CATENA_RUN " -n 1 --cpu true");
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Its name is what users see in a container, and mpirun ends by SIGABRT or explains nothing.
TEST(Preflight, AHostNameThatOpenMpiCannotUseIsNamed) {
  const std::string name(60, 'h');
  if (std::system("unshare --uts true 2>/dev/null") != 0)
    GTEST_SKIP() << "SKIPPED: no permission to change the host name of a process";
  const TempFolder folder;
  const std::string out = folder / "err";
  const int status = std::system(
      ("unshare --uts sh -c 'hostname " + name + "; " CATENA_RUN " -n 2 --cpu true' 2>" + out)
          .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_TRUE(
      read_file(out).starts_with("catena-run: Open MPI 4 cannot use the host name '" + name))
      << read_file(out);
}

TEST(Preflight, ManyArgumentsForOtherHostsAreRefused) {
  Words words = {"-H", "no-such-host:1", "-n", "1", "true"};
  words.insert(words.end(), 700, std::string(1000, 'x'));
  const Result result = run(words);
  EXPECT_EQ(result.status, 2);
  expect_contains(result.err, {"too long for jobs of several hosts"});
}

}  // namespace
}  // namespace catena::launch::test
