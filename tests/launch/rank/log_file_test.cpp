// Files of --log-dir.
#include "rank/log_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;

class LogFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_file(temporary_ / name, text);
    return temporary_ / name;
  }
  std::string error_of_log(const std::string& path, const char* host) {
    return error_of<UserError>([&] { LogFile().open(path, host); });
  }
  TempFolder temporary_;
  const std::string folder_ = temporary_.path();
};

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
  for (const auto& [name, reason] : cases)
    expect_contains(error_of_log(temporary_ / name, "h"), {reason});
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
  const auto error = [&] { return error_of_log(path, "h"); };
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
  EXPECT_EQ(error(), "no error");
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
  EXPECT_TRUE(error_of_log(folder_ + "/no/log", "h7")
                  .starts_with("cannot write log file '" + folder_ + "/no/log'"));
}

}  // namespace
}  // namespace catena::launch
