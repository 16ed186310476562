// Files of --log-dir, the output that never waits for its reader, digests of programs.
#include "rank/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/program_digest.h"
#include "base/text.h"
#include "job/output.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Folder : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text, bool program = false) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    if (program) fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  const std::string folder_ = testing::TempDir() + "catena-files-" + std::to_string(getpid());
};

using LogFiles = Folder;

TEST_F(LogFiles, KeepWhatATerminalWouldHaveKept) {
  LogFile log;
  log.open(folder_ + "/log", "h");
  log.add(Stream::output, "first\n\r\x1b[Kepoch 1 [=>");
  log.add(Stream::error, "warning\n");
  log.add(Stream::output, "  ]\r\x1b[Kepoch 1 [===]\r");
  log.add(Stream::output, "\nlast\r");
  EXPECT_EQ(read_file(folder_ + "/log"), "first\nwarning\nepoch 1 [===]\n");
  log.finish();
  EXPECT_EQ(read_file(folder_ + "/log"), "first\nwarning\nepoch 1 [===]\nlast");
  EXPECT_EQ(log.problem(), "");
}

TEST_F(LogFiles, AFullDiskIsSaid) {
  LogFile log;
  log.open("/dev/full", "h");
  log.add(Stream::output, "text\n");
  EXPECT_EQ(log.problem(), "the log /dev/full ends early: No space left on device");
  try {
    LogFile().open(folder_ + "/no/log", "h7");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find("cannot write log file '" + folder_ + "/no/log'"), 0u);
  }
}

TEST(Text, EndsOfTexts) {
  EXPECT_EQ(last_lines_of("one\ntwo\n", 100), "one\ntwo\n");
  EXPECT_EQ(last_lines_of("one\ntwo\nthree\n", 8), "three\n") << "no piece of a line";
  EXPECT_EQ(last_lines_of("one\ntwo\n", 4), "two\n");
  EXPECT_EQ(last_lines_of("0123456789", 4), "6789") << "one line longer than all";
}

TEST(OutputTest, AReaderThatStandsStillIsNotWaitedFor) {
  std::array<int, 2> out, err;
  ASSERT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(err.data(), O_CLOEXEC), 0);
  Output output(out[1], err[1]);
  const std::string block(1 << 20, 'x');
  output.add(Stream::output, block);
  output.add(Stream::error, "report\n");
  output.flush();
  EXPECT_TRUE(output.pending());
  EXPECT_TRUE(output.full());
  EXPECT_EQ(output.failure(), 0);
  EXPECT_EQ(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0) << "the file that others share is as it was";
  std::string got;
  std::array<char, 65536> bytes;
  while (got.size() < block.size()) {
    const ssize_t count = read(out[0], bytes.data(), bytes.size());
    ASSERT_GT(count, 0);
    got.append(bytes.data(), static_cast<std::size_t>(count));
    output.flush();
  }
  EXPECT_EQ(got, block);
  EXPECT_FALSE(output.pending());
  EXPECT_EQ(read(err[0], bytes.data(), bytes.size()), 7);
  for (const int fd : {out[0], out[1], err[0], err[1]}) close(fd);
}

TEST(OutputTest, WhatFailedIsKnown) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  Output output(full, full);
  output.add(Stream::output, "x");
  output.flush();
  EXPECT_EQ(output.failure(), ENOSPC);
  EXPECT_FALSE(output.pending());
  close(full);
}

using Digests = Folder;

TEST_F(Digests, ScriptsCountAndNotOnlyTheirInterpreter) {
  const std::string one = write("one.sh", "echo one\n"), two = write("two.sh", "echo two\n");
  const auto of = [](const std::string& script) {
    return program_digest({"bash", "-u", script, "x"});
  };
  EXPECT_NE(of(one).find("one.sh=9-"), std::string::npos) << of(one);
  EXPECT_NE(of(one).find("bash="), std::string::npos);
  EXPECT_EQ(program_digest({"bash", "-c", one}).find("one.sh"), std::string::npos);
  write("one.sh", "echo ONE\n");
  EXPECT_EQ(describe_difference("a", of(one), "b", of(one)), std::nullopt);
  const auto difference =
      describe_difference("a", "one.sh=9-1 bash=5-5", "b", "bash=5-5 one.sh=9-2");
  EXPECT_EQ(difference,
            "one.sh differs between hosts: a has 9-1, b has 9-2 (size-hash); copy the same files "
            "to all hosts");
  EXPECT_EQ(describe_difference("a", "x=1-1", "b", "x=1-1 libcatena_mpi.so=3-3"),
            "libcatena_mpi.so differs between hosts: a has none, b has 3-3 (size-hash); copy the "
            "same files to all hosts");
}

#ifdef STEPS_PROGRAM
TEST_F(Digests, LibcatenaAndItsPluginsCount) {
  const std::string digest = program_digest({STEPS_PROGRAM});
  for (const char* name : {"steps_program=", "libcatena.so", "libcatena_mpi.so="})
    EXPECT_NE(digest.find(name), std::string::npos) << name << " in " << digest;
}
#endif

}  // namespace
}  // namespace catena::launch
