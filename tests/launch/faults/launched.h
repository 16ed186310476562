// The real catena-run, started by tests: what it prints, how it ends and what it leaves behind.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "environment_scope.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena::launch::test {

using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

struct Result {
  int status = -1;  // exit code, 128 + signal
  std::string out;
  std::string err;
  double seconds = 0;
};

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A running catena-run whose output is collected.
class Launched {
 public:
  explicit Launched(const Words& arguments, bool terminal = false) : start_(Clock::now()) {
    int out[2];
    int err[2];
    if (terminal) {
      out[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
      grantpt(out[0]);
      unlockpt(out[0]);
      out[1] = open(ptsname(out[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
      const winsize size{30, 100, 0, 0};
      ioctl(out[1], TIOCSWINSZ, &size);
    } else if (pipe2(out, O_CLOEXEC) != 0) {
      std::abort();
    }
    if (pipe2(err, O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) become(arguments, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    fds_ = {out[0], err[0]};
  }

  // After a test that failed on the way.
  ~Launched() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Launched(const Launched&) = delete;

  pid_t pid() const { return pid_; }

  // Reads for so long, until both outputs are closed, or until standard output holds `text`.
  void read_for(double seconds, const std::string& text = "") {
    const auto start = Clock::now();
    while (seconds_since(start) < seconds && (fds_[0] >= 0 || fds_[1] >= 0)) {
      if (!text.empty() && result_.out.find(text) != std::string::npos) return;
      std::array<pollfd, 2> sources = {{{fds_[0], POLLIN, 0}, {fds_[1], POLLIN, 0}}};
      poll(sources.data(), 2, 20);
      for (std::size_t i = 0; i < 2; ++i) {
        if (!sources[i].revents) continue;
        char bytes[4096];
        const ssize_t got = read(fds_[i], bytes, sizeof(bytes));
        if (got > 0) {
          (i == 0 ? result_.out : result_.err).append(bytes, static_cast<std::size_t>(got));
        } else {
          close(fds_[i]);
          fds_[i] = -1;
        }
      }
    }
  }

  // Ends it, and fails the test, when it does not end by itself.
  Result finish() {
    read_for(30);
    int status = 0;
    const auto start = Clock::now();
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (seconds_since(start) > 2) {
        ADD_FAILURE() << "catena-run did not end; it said: " << result_.out << result_.err;
        kill(pid_, SIGKILL);
        waitpid(pid_, &status, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pid_ = -1;
    result_.seconds = seconds_since(start_);
    result_.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result_;
  }

 private:
  [[noreturn]] static void become(const Words& arguments, int out, int err) {
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    Words words = {CATENA_RUN};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(CATENA_RUN, pointers.data());
    _exit(99);
  }

  Clock::time_point start_;
  pid_t pid_ = -1;
  std::array<int, 2> fds_{-1, -1};
  Result result_;
};

inline Result run(const Words& arguments) { return Launched(arguments).finish(); }

// n CPU ranks of the fault program.
inline Result run_fault(int ranks, const Words& arguments) {
  Words words = {"-n", std::to_string(ranks), "--cpu", FAULT_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(words);
}

inline std::string host() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

inline std::string first_failure(int rank, const std::string& error) {
  std::string line = "catena-run: rank ";
  line.append(std::to_string(rank)).append(" on ").append(host());
  return line.append(" failed first: ").append(error).append("\n");
}

// The report is the last thing printed; what ranks and mpirun said stands before it.
inline std::string report_of(const Result& result) {
  const std::size_t at = result.err.find("catena-run: rank ");
  return at == std::string::npos ? "no report in: " + result.err : result.err.substr(at);
}

// "" when the file cannot be read, as those of a process that ends meanwhile.
// Processes that carry the mark in their environment.
inline int count_processes(const std::string& mark) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (read_file(entry.path() / "environ").find(mark) != std::string::npos) ++count;
  }
  return count;
}

// One of the rank processes of the job with this mark.
inline pid_t find_rank_process(const std::string& mark) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string words = read_file(entry.path() / "cmdline");
    const std::string start = std::string(CATENA_RUN) + '\0' + "--rank-process";
    if (words.starts_with(start) && read_file(entry.path() / "environ").find(mark) != words.npos)
      return std::atoi(entry.path().filename().c_str());
  }
  return 0;
}

// The mpirun of the job with this mark.
inline pid_t find_mpirun(const std::string& mark) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string words = read_file(entry.path() / "cmdline");
    if (words.starts_with(std::string("mpirun") + '\0') &&
        read_file(entry.path() / "environ").find(mark) != words.npos)
      return std::atoi(entry.path().filename().c_str());
  }
  return 0;
}

// Whether a process has the file mapped.
inline bool is_mapped(const std::filesystem::path& file) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (read_file(entry.path() / "maps").find(file.string() + '\n') != std::string::npos)
      return true;
  }
  return false;
}

// Shared memory of that name which nobody uses and which stays. Jobs of other tests come and go:
// theirs is mapped, but for a moment at their start and their end.
inline std::vector<std::filesystem::path> left_in_shared_memory(const std::string& prefix) {
  std::vector<std::filesystem::path> left;
  for (int tries = 0; tries < 40; ++tries) {
    left.clear();
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      if (entry.path().filename().string().starts_with(prefix) && !is_mapped(entry.path()))
        left.push_back(entry.path());
    }
    if (left.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return left;
}

inline bool boards_are_left() { return !left_in_shared_memory("catena-board-").empty(); }

inline std::string new_mark() {
  static int number = 0;
  std::string mark = "CATENA_TEST_MARK=";
  return mark.append(std::to_string(getpid())).append("-").append(std::to_string(++number));
}

inline void wait_for_processes(const std::string& mark, int count, double seconds) {
  const auto start = Clock::now();
  while (count_processes(mark) != count && seconds_since(start) < seconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

// An executable file in the test's temporary folder, gone with this object.
class Script {
 public:
  Script(const std::string& name, const std::string& text)
      : path_(::testing::TempDir() + "catena-" + std::to_string(getpid()) + "-" + name) {
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    std::ofstream(path_) << text;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~Script() { std::filesystem::remove(path_); }
  Script(const Script&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using Setting = EnvironmentScope;  // while it lives

// Sends a signal to a running job of three ranks and sees that nothing is left after `limit`.
inline void expect_clean_end(int signal, const Words& options, const std::string& mode,
                             double limit) {
  const std::string mark = new_mark();
  Words words = {"-n", "3", "--env", mark};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {FAULT_PROGRAM, mode});
  Launched running(words);
  wait_for_processes(mark, 3 + 3 + 1, 10);  // programs, rank processes, mpirun
  running.read_for(0.3);
  ASSERT_EQ(count_processes(mark), 7);
  const auto start = Clock::now();
  kill(running.pid(), signal);
  const Result result = running.finish();
  EXPECT_LT(seconds_since(start), limit);
  EXPECT_EQ(result.status, 128 + signal);
  if (signal == SIGKILL) wait_for_processes(mark, 0, 5);
  EXPECT_EQ(count_processes(mark), 0);
  EXPECT_FALSE(boards_are_left());
}

}  // namespace catena::launch::test
