#include "base/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/text.h"

namespace catena::launch {
namespace {

constexpr int kMark = 0x63617461;  // the value that a marked signal carries

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

void Descriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

namespace {

pthread_t g_reader;  // the thread that reads the queue

// Runs only in threads that do not block the signal, which are not ours: a library has started one
// and unblocked everything. Sent to the reader, which does block it, the signal gets to the queue.
void hand_over(int signal) {
  const int error = errno;
  pthread_kill(g_reader, signal);
  errno = error;
}

}  // namespace

SignalQueue::SignalQueue(std::initializer_list<int> signals) {
  sigemptyset(&signals_);
  for (const int signal : signals) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    // nohup asked that a hang-up be ignored. Others that are ignored are so by accident.
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    sigaddset(&signals_, signal);
    actions_before_.emplace_back(signal, before);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  g_reader = pthread_self();
  struct sigaction action {};
  action.sa_handler = hand_over;
  action.sa_flags = SA_RESTART;
  for (const auto& [signal, before] : actions_before_) sigaction(signal, &action, nullptr);
  descriptor_ = Descriptor(signalfd(-1, &signals_, SFD_NONBLOCK | SFD_CLOEXEC));
}

int SignalQueue::next() {
  signalfd_siginfo info{};
  const ssize_t got = read(descriptor_.get(), &info, sizeof(info));
  if (got != sizeof(info)) return 0;
  sender_ = {static_cast<int>(info.ssi_pid), info.ssi_code == SI_QUEUE && info.ssi_int == kMark};
  return static_cast<int>(info.ssi_signo);
}

bool send_marked_signal(int pid, int signal) {
  sigval value{};
  value.sival_int = kMark;
  return sigqueue(pid, signal, value) == 0;
}

void SignalQueue::restore_in_child() const {
  ::signal(SIGPIPE, SIG_DFL);
  for (const auto& [signal, before] : actions_before_) sigaction(signal, &before, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

namespace {

// Whether a signal would not simply end the process: it has a handler, or is ignored or blocked.
bool is_handled(const std::string& process, int signal) {
  std::ifstream status(process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigBlk:") && !line.starts_with("SigIgn:") &&
        !line.starts_with("SigCgt:"))
      continue;
    if (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) return true;
  }
  return false;
}

}  // namespace

void signal_handlers(int group, int signal) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && getpgid(pid) == group && is_handled(entry.path().string(), signal))
      kill(pid, signal);
  }
}

std::uint64_t wall_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

double monotonic_seconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return seconds_of(time);
}

std::string read_some(Descriptor& source) {
  std::array<char, 65536> bytes;
  const ssize_t got = read(source.get(), bytes.data(), bytes.size());
  if (got > 0) return std::string(bytes.data(), static_cast<std::size_t>(got));
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) source.reset();
  return "";
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

void poll_until(std::span<pollfd> sources, double deadline) {
  const double wait = deadline - monotonic_seconds();
  const int milliseconds = wait > 3600 ? -1 : std::max(0, static_cast<int>(wait * 1000) + 1);
  poll(sources.data(), sources.size(), milliseconds);
}

std::vector<char*> argv_of(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

pid_t fork_group() {
  const pid_t pid = fork();
  if (pid < 0) throw UserError(std::string("cannot fork: ") + std::strerror(errno), 126);
  setpgid(pid, pid);  // in both processes; whoever comes first
  return pid;
}

void start_detached(const std::vector<std::string>& words) {
  const std::vector<char*> pointers = argv_of(words);
  if (fork() != 0) return;
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, stream);
  execv(pointers[0], pointers.data());
  _exit(127);
}

void wait_for_children(const std::vector<int>& pids, double seconds) {
  const double until = monotonic_seconds() + seconds;
  for (const int pid : pids)
    while (waitpid(pid, nullptr, WNOHANG) == 0 && monotonic_seconds() < until) poll(nullptr, 0, 5);
}

void kill_children() {
  const std::string list = "/proc/self/task/" + std::to_string(getpid()) + "/children";
  for (int round = 0; round < 20; ++round) {
    std::ifstream children(list);
    bool any = false;
    for (pid_t pid = 0; children >> pid; any = true) kill(pid, SIGKILL);
    if (!any) return;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    poll(nullptr, 0, 2);
  }
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  if (!name) return "signal " + std::to_string(signal);
  std::string description = sigdescr_np(signal);
  if (!description.empty())
    description[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(description[0])));
  return std::string("SIG") + name + " (" + description + ")";
}

}  // namespace catena::launch
