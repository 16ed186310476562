// The segment of a status board: making, joining, mapping and removing it. See status_board.h.
#include "status_board.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "segment.h"

namespace catena::comm {

using board_detail::Segment;
using board_detail::Slot;

namespace {

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// A shared-memory object is "/name"; anything with a second slash is a path, whose links are the
// kernel's own (/proc/PID/fd/N).
int open_segment(const std::string& name, int flags) {
  const bool path = name.find('/', 1) != std::string::npos;
  return path ? ::open(name.c_str(), flags | O_CLOEXEC, 0600)
              : ::shm_open(name.c_str(), flags | O_CLOEXEC, 0600);
}

// Whether nobody but this user could have made the file or can write to it. Another user who knows
// the name may be there first: that file must not be believed, and could be cut while it is mapped.
bool is_own(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IRWXG | S_IRWXO)) == 0 && status.st_nlink <= 1;
}

[[noreturn]] void refuse_foreign(int fd, const std::string& name) {
  struct stat status {};
  fstat(fd, &status);
  ::close(fd);
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", status.st_mode & 07777u);
  throw std::runtime_error("status board: " + name + " belongs to user " +
                           std::to_string(status.st_uid) + " with mode " + mode +
                           ", expected this user's own (" + std::to_string(geteuid()) +
                           ") with mode 0600; somebody else has taken its name");
}

// Whether `name` still leads to the file that is open as `fd`.
bool name_leads_to(const std::string& name, int fd) {
  struct stat named {};
  struct stat opened {};
  const int again = open_segment(name, O_RDWR);
  if (again < 0) return false;
  const bool same = fstat(again, &named) == 0 && fstat(fd, &opened) == 0 &&
                    named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
  ::close(again);
  return same;
}

// A new object, or the one that another process of this user has made: -1 with errno.
int make_or_open(const std::string& name) {
  for (;;) {
    const int made = open_segment(name, O_RDWR | O_CREAT | O_EXCL);
    if (made >= 0 || errno != EEXIST) return made;
    const int found = open_segment(name, O_RDWR);
    if (found >= 0 || errno != ENOENT) return found;  // else it was removed in between
  }
}

// Opens or makes the object and marks it as in use with a shared lock. In between a cleaner may
// have removed it, hence the second check.
int open_and_lock(const std::string& name) {
  for (;;) {
    const int fd = make_or_open(name);
    if (fd < 0) throw_system_error("status board: cannot create shared memory " + name);
    if (!is_own(fd)) refuse_foreign(fd, name);
    if (flock(fd, LOCK_SH) == 0 && name_leads_to(name, fd)) return fd;
    ::close(fd);
  }
}

}  // namespace

StatusBoard::StatusBoard(Segment* segment, std::size_t size, int fd, int local_rank)
    : segment_(segment), size_(size), fd_(fd), local_rank_(local_rank) {}

StatusBoard::StatusBoard(StatusBoard&& other) noexcept { *this = std::move(other); }

StatusBoard& StatusBoard::operator=(StatusBoard&& other) noexcept {
  std::swap(segment_, other.segment_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  std::swap(local_rank_, other.local_rank_);
  return *this;
}

StatusBoard::~StatusBoard() {
  if (segment_) munmap(segment_, size_);
  if (fd_ >= 0) ::close(fd_);
}

StatusBoard StatusBoard::map(int fd, std::size_t size, const std::string& name) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    ::close(fd);
    errno = error;
    throw_system_error("status board: cannot map " + name);
  }
  return StatusBoard(static_cast<Segment*>(memory), size, fd, 0);
}

StatusBoard StatusBoard::create(const std::string& name, int slots) {
  if (slots < 1 || slots > kMaxSlots)
    throw std::invalid_argument("status board: " + std::to_string(slots) +
                                " slots asked for, expected 1 to " + std::to_string(kMaxSlots));
  const int fd = open_and_lock(name);
  const std::size_t size = Segment::bytes(slots);
  // Room is taken now: a segment that only promises its size kills its writers by SIGBUS when
  // /dev/shm is full.
  const int error = posix_fallocate(fd, 0, static_cast<off_t>(size));
  if (error != 0) {
    ::close(fd);
    unlink(name);
    throw std::system_error(error, std::generic_category(),
                            "status board: no room for " + std::to_string(size) +
                                " bytes of shared memory (containers: --shm-size=1g)");
  }
  StatusBoard board = map(fd, size, name);
  board.segment_->slot_count.store(static_cast<std::uint64_t>(slots), std::memory_order_release);
  board.segment_->magic.store(board_detail::kMagic, std::memory_order_release);
  return board;
}

StatusBoard StatusBoard::attach(const std::string& name) {
  const int fd = open_segment(name, O_RDWR);
  if (fd < 0) throw_system_error("status board: cannot open " + name);
  if (!is_own(fd)) refuse_foreign(fd, name);
  struct stat status {};
  if (fstat(fd, &status) != 0 || static_cast<std::size_t>(status.st_size) < sizeof(Segment)) {
    ::close(fd);
    throw std::runtime_error("status board: " + name + " is not a status board (" +
                             std::to_string(status.st_size) + " bytes)");
  }
  StatusBoard board = map(fd, static_cast<std::size_t>(status.st_size), name);
  const int slots = board.slots();
  if (board.segment_->magic.load(std::memory_order_acquire) != board_detail::kMagic || slots < 1 ||
      slots > kMaxSlots || Segment::bytes(slots) > board.size_)
    throw std::runtime_error("status board: " + name +
                             " was made by another version of catena; start the program with the "
                             "catena-run of the version it was linked with");
  return board;
}

StatusBoard StatusBoard::attach_from_environment() {
  const char* name = std::getenv("CATENA_STATUS_BOARD");
  if (!name || !*name) return create_private(1);
  StatusBoard board = attach(name);
  const char* text = std::getenv("CATENA_LOCAL_RANK");
  char* end = nullptr;
  const long rank = text ? std::strtol(text, &end, 10) : -1;
  if (!text || end == text || *end || rank < 0 || rank >= board.slots())
    throw std::runtime_error("status board: CATENA_LOCAL_RANK is '" +
                             std::string(text ? text : "(not set)") +
                             "', expected a number from 0 to " + std::to_string(board.slots() - 1) +
                             "; catena-run sets it");
  board.local_rank_ = static_cast<int>(rank);
  return board;
}

StatusBoard StatusBoard::create_private(int slots) {
  const std::size_t size = Segment::bytes(std::max(slots, 1));
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_system_error("status board: no memory");
  auto* segment = static_cast<Segment*>(memory);
  segment->slot_count.store(static_cast<std::uint64_t>(std::max(slots, 1)),
                            std::memory_order_release);
  return StatusBoard(segment, size, -1, 0);
}

bool StatusBoard::unlink(const std::string& name) { return ::shm_unlink(name.c_str()) == 0; }

int StatusBoard::remove_stale(const std::string& prefix) {
  DIR* directory = opendir("/dev/shm");
  if (!directory) return 0;
  const std::string start = prefix.substr(prefix.starts_with('/') ? 1 : 0);
  int removed = 0;
  while (const dirent* entry = readdir(directory)) {
    std::string name = "/";
    name += entry->d_name;
    if (!name.substr(1).starts_with(start)) continue;
    const int fd = open_segment(name, O_RDWR);
    if (fd < 0) continue;  // another user's
    if (!is_own(fd)) {
      ::close(fd);
      continue;
    }
    // Everyone who made or joined the segment holds a shared lock while alive.
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && unlink(name)) ++removed;
    ::close(fd);
  }
  closedir(directory);
  return removed;
}

int StatusBoard::slots() const {
  return static_cast<int>(segment_->slot_count.load(std::memory_order_acquire));
}

int StatusBoard::arrive() { return static_cast<int>(segment_->arrived.fetch_add(1)) + 1; }

Slot& StatusBoard::checked_slot(int local_rank) const {
  if (local_rank < 0 || local_rank >= slots())
    throw std::out_of_range("status board: slot " + std::to_string(local_rank) +
                            " asked for, the board has " + std::to_string(slots()));
  return segment_->slots[local_rank];
}

StatusSlot StatusBoard::slot(int local_rank) const { return StatusSlot(&checked_slot(local_rank)); }

}  // namespace catena::comm
