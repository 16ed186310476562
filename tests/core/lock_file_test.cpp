#include "core/lock_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "temp_folder.h"

namespace catena {
namespace {

int state_of_lock(const std::string& path) { return LockFile(path, O_RDWR).try_lock(); }

TEST(LockFile, IsHeldUntilItIsDestroyed) {
  const TempFolder folder;
  const std::string path = folder / "lock";
  {
    LockFile file(path, O_RDWR | O_CREAT);
    ASSERT_EQ(file.error(), 0);
    EXPECT_TRUE(file.is_private());
    EXPECT_EQ(file.lock(), 0);
    EXPECT_EQ(state_of_lock(path), EWOULDBLOCK);
  }
  EXPECT_EQ(state_of_lock(path), 0);
  EXPECT_EQ(LockFile(folder / "none", O_RDWR).error(), ENOENT);
}

// The process that holds the lock is killed, and its child lives on.
TEST(LockFile, IsNotKeptByChildren) {
  const TempFolder folder;
  const std::string path = folder / "lock";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    LockFile file(path, O_RDWR | O_CREAT);
    file.lock();
    const bool is_child = ::fork() == 0;
    const pid_t own = ::getpid();
    if (is_child) (void)!::write(ready[1], &own, sizeof own);
    ::alarm(60);
    for (;;) ::pause();
  }
  pid_t child = 0;
  ASSERT_EQ(::read(ready[0], &child, sizeof child), ssize_t(sizeof child));
  EXPECT_EQ(state_of_lock(path), EWOULDBLOCK);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_EQ(state_of_lock(path), 0);
  ::kill(child, SIGKILL);
  for (const int end : ready) ::close(end);
}

// A child that ends, or uses the number of the descriptor for another file, does no harm.
TEST(LockFile, OfTheParentIsNotTheChilds) {
  const TempFolder folder;
  LockFile file(folder / "lock", O_RDWR | O_CREAT);
  ASSERT_EQ(file.lock(), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_closed = file.descriptor() < 0;
    file.~LockFile();
    ::_exit(is_closed ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(state_of_lock(folder / "lock"), EWOULDBLOCK);
}

TEST(LockFile, IsPrivateIfNobodyElseCanOpenIt) {
  const TempFolder folder;
  write_file(folder / "readable", "");
  ASSERT_EQ(::chmod((folder / "readable").c_str(), 0644), 0);
  EXPECT_FALSE(LockFile(folder / "readable", O_RDWR).is_private());
  { const LockFile file(folder / "linked", O_RDWR | O_CREAT); }
  ASSERT_EQ(::link((folder / "linked").c_str(), (folder / "again").c_str()), 0);
  EXPECT_FALSE(LockFile(folder / "again", O_RDWR).is_private());
}

}  // namespace
}  // namespace catena
