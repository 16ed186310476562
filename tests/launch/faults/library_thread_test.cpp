// A library that catena-run loads, the driver's above all, may start a thread. Signals of the
// process can then be delivered to that thread: whatever it leaves to the default would be lost
// (the end of mpirun) or end catena-run without a word (Ctrl-C).
#include "launched.h"

namespace catena::launch::test {
namespace {

class LibraryThread : public ::testing::Test {
 protected:
  void SetUp() override {
    // The pretended library is in use: it alone reports these.
    const Result result = run({"--check"});
    ASSERT_NE(result.out.find("fake GPU"), std::string::npos) << result.out;
  }

 private:
  static std::string path() {
    const char* old = std::getenv("LD_LIBRARY_PATH");
    return std::string(FAKE_NVML_FOLDER) + (old ? ":" + std::string(old) : "");
  }
  Setting library_{"LD_LIBRARY_PATH", path()};
  Setting gpus_{"FAKE_NVML_GPUS", "3"};
  Setting visible_{"CUDA_VISIBLE_DEVICES", "0,1,2"};
};

TEST_F(LibraryThread, DoesNotKeepTheJobFromEnding) {
  for (int i = 0; i < 5; ++i) {
    const Result result = run({"-n", "3", "sh", "-c", "echo on $CATENA_DEVICE"});
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.err, "");
    expect_contains(result.out, {"on cuda:0\n", "[2] on cuda:2\n"});
    EXPECT_LT(result.seconds, 8);
  }
}

TEST_F(LibraryThread, DoesNotHideAFailure) {
  const Result result = run({"-n", "3", "sh", "-c", "[ $CATENA_RANK = 1 ] && exit 42; sleep 30"});
  EXPECT_EQ(result.status, 42);
  EXPECT_EQ(report_of(result), first_failure(1, "exit code 42"));
  EXPECT_LT(result.seconds, 8);
}

TEST_F(LibraryThread, LeavesCtrlCToTheLauncher) { expect_clean_end(SIGINT, {}, "hang", 5); }
TEST_F(LibraryThread, LeavesTermToTheLauncher) { expect_clean_end(SIGTERM, {}, "stubborn", 5); }

// nohup asks that a job outlives its terminal; nobody may undo that.
TEST_F(LibraryThread, AnIgnoredSignalStaysIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  Launched running({"-n", "2", "sh", "-c", "sleep 1; echo done"});
  running.read_for(0.5);
  kill(running.pid(), SIGHUP);
  const Result result = running.finish();
  std::signal(SIGHUP, before);
  EXPECT_EQ(result.status, 0);
  expect_contains(result.out, {"done\n"});
}

}  // namespace
}  // namespace catena::launch::test
