// Files of --log-dir.
#include "rank/log_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Folder : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text, bool program = false) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    if (program) fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  const std::string folder_ = ::testing::TempDir() + "catena-files-" + std::to_string(getpid());
};

using LogFiles = Folder;

// Others may have put them there.
TEST_F(LogFiles, LinksOfOthersAndPipesAreRefused) {
  const std::string precious = write("precious", "text");
  fs::create_symlink(precious, folder_ + "/link");
  fs::create_symlink("/tmp/catena-nothing-here", folder_ + "/dangling");
  for (const char* name : {"/link", "/dangling"})
    if (lchown((folder_ + name).c_str(), 65534, 65534) != 0)
      GTEST_SKIP() << "only root can give a link to another user";
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  const std::pair<const char*, const char*> cases[] = {{"link", "it is a symbolic link"},
                                                       {"dangling", "it is a symbolic link"},
                                                       {"pipe", "it is not a regular file"}};
  for (const auto& [name, reason] : cases) {
    LogFile log;
    try {
      log.open(folder_ + "/" + name, "h");
      ADD_FAILURE() << name << " was opened";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(read_file(precious), "text");
}

TEST_F(LogFiles, OfAnEarlierJobAreWrittenAnew) {
  const std::string path = write("log", "long text of an earlier job\n");
  LogFile log;
  log.open(path, "h");
  log.add(Stream::output, "new\n");
  log.finish();
  EXPECT_EQ(read_file(path), "new\n");
}

TEST_F(LogFiles, OfAnotherJobThatRunsAreRefused) {
  const std::string path = folder_ + "/log";
  const auto error = [&] {
    LogFile second;
    try {
      second.open(path, "h");
      return std::string();
    } catch (const UserError& problem) {
      return std::string(problem.what());
    }
  };
  {
    LogFile first;
    first.open(path, "h");
    first.add(Stream::output, "of the first job\n");
    EXPECT_EQ(error(),
              "cannot write log file '" + path +
                  "' on host h: a rank of another job writes it (or its host is lost: then "
                  "remove it); give another --log-dir");
    EXPECT_EQ(read_file(path), "of the first job\n");
  }
  EXPECT_EQ(error(), "");
  // Of devices there is one for all.
  LogFile null, null_too;
  null.open("/dev/null", "h");
  null_too.open("/dev/null", "h");
}

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

}  // namespace
}  // namespace catena::launch
