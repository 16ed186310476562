#include "rank/daemon_end.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "base/process.h"

namespace catena::launch {
namespace {

constexpr int kPoll = 200;    // milliseconds
constexpr double kEnd = 6.0;  // seconds that mpirun takes at most to end its daemons

std::string content_of(pid_t process, const char* file) {
  std::ifstream stream("/proc/" + std::to_string(process) + "/" + file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A number tells a process from a later one of the same number; "" when there is none.
std::string start_of(pid_t process) {
  const std::string stat = content_of(process, "stat");
  std::size_t at = stat.rfind(')');  // of its name, which may have blanks
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return "";
  return stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

[[noreturn]] void wait_and_kill(pid_t process, const std::string& start, double seconds) {
  const double until = monotonic_seconds() + seconds;
  while (start_of(process) == start && monotonic_seconds() < until) poll(nullptr, 0, kPoll);
  if (start_of(process) == start) kill(process, SIGKILL);
  _exit(0);
}

}  // namespace

bool is_daemon_of_mpirun(pid_t process) {
  const std::string name = content_of(process, "comm");
  return name == "orted\n" || name == "prted\n";
}

void end_daemon_later(pid_t process, double grace) {
  if (is_daemon_of_mpirun(process)) end_later(process, grace + kEnd);
}

void end_later(pid_t process, double seconds) {
  const std::string start = start_of(process);
  if (start.empty()) return;
  const pid_t child = fork();
  if (child < 0) return;
  if (child > 0) {
    waitpid(child, nullptr, 0);
    return;
  }
  // Its parent ends at once, so that nobody takes it for a process that a rank has left behind.
  setsid();
  if (fork() != 0) _exit(0);
  prctl(PR_SET_PDEATHSIG, 0);
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) ::signal(signal, SIG_IGN);
  close_range(0, ~0u, 0);
  wait_and_kill(process, start, seconds);
}

}  // namespace catena::launch
