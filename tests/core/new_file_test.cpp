// New files in folders where others plant links, pipes and files, and what killed processes left.
#include "core/new_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "temp_folder.h"

namespace catena {
namespace {

constexpr uid_t kOtherUser = 65534;

class NewFileTest : public ::testing::Test {
 protected:
  // A file that was last written so long ago.
  std::string file_of_age(const std::string& name, time_t seconds) {
    write_file(folder_ / name, "left");
    const timespec when{::time(nullptr) - seconds, 0};
    const timespec times[2] = {when, when};
    EXPECT_EQ(::utimensat(AT_FDCWD, (folder_ / name).c_str(), times, 0), 0);
    return folder_ / name;
  }
  TempFolder folder_;
};

TEST_F(NewFileTest, AppearsWhenRenamed) {
  {
    NewFile file(folder_ / "a");
    ASSERT_EQ(file.error(), 0);
    EXPECT_EQ(file.write("text", 4), 0);
    EXPECT_EQ(file.sync(), 0);
    EXPECT_EQ(file.close(), 0);
    EXPECT_EQ(file.rename(folder_ / "a"), 0);
  }
  EXPECT_EQ(read_file(folder_ / "a"), "text");
  { const NewFile dropped(folder_ / "b"); }
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(NewFileTest, NamesCannotBeGuessed) {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) {
    const NewFile file(folder_ / "a");
    const std::string random = file.path().substr(file.path().rfind('.') + 1);
    EXPECT_EQ(random.size(), 16u);
    EXPECT_NE(random, std::to_string(::getpid()));
    names.insert(random);
  }
  EXPECT_EQ(names.size(), 100u);
}

TEST_F(NewFileTest, ModesAreThoseAskedFor) {
  const mode_t before = ::umask(027);
  const NewFile masked(folder_ / "a"), exact(folder_ / "b", 0666, true),
      secret(folder_ / "c", 0600);
  ::umask(before);
  struct stat status {};
  EXPECT_EQ(::fstat(masked.descriptor(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_EQ(::fstat(exact.descriptor(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666u);
  EXPECT_EQ(::fstat(secret.descriptor(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(NewFileTest, RenamingReplacesALinkAndNotItsTarget) {
  write_file(folder_ / "thesis", "kept");
  std::filesystem::create_symlink(folder_ / "thesis", folder_ / "a");
  NewFile file(folder_ / "a");
  EXPECT_EQ(file.rename(folder_ / "a"), 0);
  EXPECT_EQ(read_file(folder_ / "thesis"), "kept");
  EXPECT_FALSE(std::filesystem::is_symlink(folder_ / "a"));
}

TEST_F(NewFileTest, ErrorsAreThoseOfTheSystem) {
  EXPECT_EQ(NewFile(folder_ / "no/a").error(), ENOENT);
  NewFile file(folder_ / "a");
  EXPECT_EQ(file.rename(folder_ / "no/a"), ENOENT);
}

// The container case: names of the form before this one had, with this very process's number.
TEST_F(NewFileTest, LeftOversGoWhenNobodyWritesThem) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string own = std::string(".a.tmp.") + host + "." + std::to_string(::getpid()) + ".0";
  file_of_age(own, 120);
  file_of_age(".a.tmp.0123456789abcdef", 120);
  const std::string young = file_of_age(".a.tmp.young", 2);
  const std::string other = file_of_age(".ab.tmp.0123456789abcdef", 120);
  const std::string busy = file_of_age(".a.tmp.busy", 120);
  const int holder = ::open(busy.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(holder, LOCK_EX), 0);
  remove_left_over_files(folder_ / "a");
  EXPECT_FALSE(std::filesystem::exists(folder_ / own));
  EXPECT_EQ(folder_.entries(), 3);
  for (const std::string& kept : {young, other, busy}) EXPECT_TRUE(std::filesystem::exists(kept));
  ::close(holder);
}

TEST_F(NewFileTest, ItsOwnLockProtectsANewFile) {
  const NewFile file(folder_ / "a");
  const timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::futimens(file.descriptor(), old), 0);
  remove_left_over_files(folder_ / "a");
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(NewFileTest, PlantedPipesAndLinksAreLeftAlone) {
  const std::string thesis = file_of_age("thesis", 1000);
  ASSERT_EQ(::mkfifo((folder_ / ".a.tmp.host.999999.0").c_str(), 0666), 0);
  std::filesystem::create_symlink(thesis, folder_ / ".a.tmp.link");
  std::filesystem::create_directory(folder_ / ".a.tmp.folder");
  remove_left_over_files(folder_ / "a");  // does not wait for a writer or reader
  EXPECT_EQ(folder_.entries(), 4);
  EXPECT_EQ(read_file(thesis), "left");
}

TEST_F(NewFileTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0666), 0);
  write_file(folder_ / "file", "text");
  std::filesystem::create_symlink(folder_ / "file", folder_ / "link");
  for (const char* name : {"pipe", "link", ".", "none"}) {
    EXPECT_EQ(open_regular_file(folder_ / name, O_RDONLY), -1) << name;
    EXPECT_EQ(open_regular_file(folder_ / name, O_WRONLY), -1) << name;
  }
  const int file = open_regular_file(folder_ / "file", O_RDONLY);
  EXPECT_GE(file, 0);
  ::close(file);
}

TEST_F(NewFileTest, OwnLinksAreFollowedToTheirEnd) {
  std::filesystem::create_directory(folder_ / "b");
  std::filesystem::create_symlink("b/second", folder_ / "first");
  std::filesystem::create_symlink("../end", folder_ / "b/second");
  std::filesystem::create_symlink("loop", folder_ / "loop");
  int error = -1;
  std::string culprit;
  EXPECT_EQ(follow_own_links(folder_ / "first", &error, &culprit), folder_ / "b/../end");
  EXPECT_EQ(error, 0);
  EXPECT_EQ(follow_own_links(folder_ / "plain", &error, &culprit), folder_ / "plain");
  EXPECT_EQ(error, 0);
  follow_own_links(folder_ / "loop", &error, &culprit);
  EXPECT_EQ(error, ELOOP);
}

TEST_F(NewFileTest, LinksOfOthersAreNotFollowed) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "********** needs root: links of other users NOT tested **********";
  std::filesystem::create_symlink("thesis", folder_ / "a");
  ASSERT_EQ(::lchown((folder_ / "a").c_str(), kOtherUser, kOtherUser), 0);
  int error = 0;
  std::string culprit;
  follow_own_links(folder_ / "a", &error, &culprit);
  EXPECT_EQ(error, EPERM);
  EXPECT_EQ(culprit, folder_ / "a");
}

}  // namespace
}  // namespace catena
