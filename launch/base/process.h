// Thin wrappers around the system calls that the launcher and the rank process share.
#pragma once

#include <poll.h>

#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::launch {

// Closes on destruction.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};
Pipe make_pipe();  // close-on-exec

struct SignalSender {
  int pid = 0;          // 0: the kernel, or a process of another namespace
  bool marked = false;  // by send_marked_signal()
};

// Takes signals out of their asynchronous delivery; they are then read from a descriptor by the
// thread that made the queue. One queue a process, made before libraries are loaded. What a
// library's thread takes all the same gets here too, unless that library has its own handlers.
class SignalQueue {
 public:
  SignalQueue(std::initializer_list<int> signals);
  int fd() const { return descriptor_.get(); }
  int next();  // 0 when none waits
  // Who sent the one that next() returned last.
  const SignalSender& sender() const { return sender_; }
  // In a child before exec: as it was before this queue.
  void restore_in_child() const;

 private:
  sigset_t signals_;
  sigset_t mask_before_;
  std::vector<std::pair<int, struct sigaction>> actions_before_;
  Descriptor descriptor_;
  SignalSender sender_;
};

// The form in which catena-run sends signals to its rank processes, which distinguish it from
// kill() by others.
bool send_marked_signal(int pid, int signal);

// Sends a signal to those processes of the group that handle it.
void signal_handlers(int group, int signal);

std::uint64_t wall_ns();
double monotonic_seconds();

void set_nonblocking(int fd);

constexpr double kNever = 1e18;  // as a time of monotonic_seconds()
// poll() that returns at that time at the latest.
void poll_until(std::span<pollfd> sources, double deadline);

// What can be read at once, at most 64 KiB; "" when nothing can. Closes the descriptor at the end
// of its input, which for a terminal is an error.
std::string read_some(Descriptor& source);

// What execv and execvp take; refers to the words.
std::vector<char*> argv_of(const std::vector<std::string>& words);

// fork(), whose child is the head of its own process group. Throws UserError.
pid_t fork_group();

// Starts a program, the first of `words` is its path, that nobody waits for. It has no output, is
// in a session of its own and takes all signals.
void start_detached(const std::vector<std::string>& words);

// Waits until none of these children runs any more, at most so many seconds.
void wait_for_children(const std::vector<int>& pids, double seconds);

// Ends all children of this process and what becomes its child on the way (it is a subreaper).
void kill_children();

// "SIGSEGV (segmentation fault)"
std::string signal_name(int signal);

}  // namespace catena::launch
