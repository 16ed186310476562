// What a program's outer frame makes of its end.
#include "catena/comm/run_main.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "catena/array/creation.h"
#include "catena/core/error.h"
#include "catena/core/memory.h"
#include "environment_scope.h"
#include "status/status_board.h"

namespace catena {
namespace {

char kName[] = "program";
char* arguments[] = {kName, nullptr};

// What `body` returns or throws becomes an exit code and text on standard error.
std::pair<int, std::string> run(const std::function<int(int, char**)>& body) {
  ::testing::internal::CaptureStderr();
  const int code = run_main(1, arguments, body);
  return {code, ::testing::internal::GetCapturedStderr()};
}

TEST(RunMain, HandsTheCodeOn) {
  EXPECT_EQ(run([](int argc, char** argv) { return argc == 1 && argv == arguments ? 7 : 0; }),
            std::pair(7, std::string()));
}

TEST(RunMain, ExceptionsAreOneLine) {
  EXPECT_EQ(run([](int, char**) -> int { fail<IoError>("cannot open '", "x", "'"); }),
            std::pair(1, std::string("program: error: cannot open 'x'\n")));
  EXPECT_EQ(run([](int, char**) -> int { throw 5; }),
            std::pair(1, std::string("program: error: an exception that is not a "
                                     "std::exception\n")));
}

TEST(RunMain, OutOfMemoryIsAClearEnd) {
  const Device device = cpu(5);
  set_memory_limit(device, 1 << 20);
  const auto [code, text] = run([&](int, char**) {
    return static_cast<int>(empty({1 << 28}, {Dtype::kUInt8, device}).size());
  });
  set_memory_limit(device, 0);
  EXPECT_EQ(code, 1);
  EXPECT_EQ(text.find("program: error: out of memory on cpu:5: asked for 268435456 bytes"), 0u)
      << text;
}

// As catena-run gives each rank a slot.
class BoardTest : public ::testing::Test {
 protected:
  BoardTest()
      : name_("/catena-test-run-main-" + std::to_string(getpid())),
        board_(comm::StatusBoard::create(name_, 2)) {
    environment_.set("CATENA_STATUS_BOARD", name_);
    environment_.set("CATENA_LOCAL_RANK", "1");
  }
  ~BoardTest() override { comm::StatusBoard::unlink(name_); }
  comm::Failure failure(int rank) const { return board_.read(rank).own_failure; }

  std::string name_;
  comm::StatusBoard board_;
  EnvironmentScope environment_;
};

TEST_F(BoardTest, FailuresAreLeftForTheLauncher) {
  EXPECT_EQ(run([](int, char**) -> int { throw std::runtime_error("boom"); }).first, 1);
  EXPECT_TRUE(failure(1).present);
  EXPECT_EQ(failure(1).text, "boom");
  report_failure("a later text");
  EXPECT_EQ(failure(1).text, "boom") << "the first text stays";
  EXPECT_FALSE(failure(0).present);
}

TEST_F(BoardTest, GoodEndsLeaveNothing) {
  EXPECT_EQ(run([](int, char**) { return 3; }).first, 3);
  EXPECT_FALSE(failure(1).present);
}

TEST_F(BoardTest, ABoardThatIsGoneDoesNoHarm) {
  environment_.set("CATENA_STATUS_BOARD", "/catena-no-such-board");
  EXPECT_EQ(run([](int, char**) -> int { throw std::runtime_error("boom"); }),
            std::pair(1, std::string("program: error: boom\n")));
}

}  // namespace
}  // namespace catena
