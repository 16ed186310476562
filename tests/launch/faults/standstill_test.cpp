// Jobs that something outside keeps from going on: readers that stand still, a stopped mpirun,
// strangers on its ports, a batch system that wants the machine back.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "launched.h"

namespace catena::launch::test {
namespace {

namespace fs = std::filesystem;

// Processes with the mark.
std::vector<pid_t> processes(const std::string& mark) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (read_file(entry.path() / "environ").find(mark) != std::string::npos)
      found.push_back(std::atoi(entry.path().filename().c_str()));
  return found;
}

struct Listener {
  std::string address;  // in the kernel's hexadecimal, as 0100007F
  int port = 0;
};

// Where a process listens for connections of TCP.
std::vector<Listener> listeners(pid_t pid) {
  std::set<std::string> inodes;
  const std::string proc = "/proc/" + std::to_string(pid);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(proc + "/fd", error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  std::vector<Listener> found;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::istringstream lines(read_file(proc + table));
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, skip, inode;
      words >> number >> local >> remote >> state >> skip >> skip >> skip >> skip >> skip >> inode;
      const std::size_t colon = local.find(':');
      if (state != "0A" || !inodes.contains(inode) || colon == std::string::npos) continue;
      found.push_back({local.substr(0, colon), std::stoi(local.substr(colon + 1), nullptr, 16)});
    }
  }
  return found;
}

bool is_loopback(const Listener& listener) {
  return listener.address == "0100007F" || listener.address.ends_with("0000000001000000");
}

// Sends what a port scanner sends, and keeps the connection.
int send_http(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0)
    EXPECT_EQ(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
  return fd;
}

#ifdef FAULT_MPI_PROGRAM
TEST(Ports, RanksOfOneHostListenOnNone) {
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--env", mark, FAULT_MPI_PROGRAM, "wait"});
  running.read_for(10, "waiting");
  int ranks = 0;
  for (const pid_t pid : processes(mark)) {
    if (!read_file("/proc/" + std::to_string(pid) + "/cmdline").starts_with(FAULT_MPI_PROGRAM))
      continue;
    ++ranks;
    for (const Listener& listener : listeners(pid))
      EXPECT_TRUE(is_loopback(listener)) << listener.address << ":" << listener.port;
  }
  EXPECT_EQ(ranks, 2);
  EXPECT_EQ(running.finish().status, 0);
}

// Open MPI's mpirun does listen, and waits for the rest of what it is sent. The ranks do not need
// it.
TEST(Ports, StrangersDoNotKeepAJobFromEnding) {
  const std::string mark = new_mark();
  Launched running(
      {"-n", "2", "--cpu", "--timeout", "3", "--env", mark, FAULT_MPI_PROGRAM, "wait"});
  running.read_for(10, "waiting");
  std::vector<int> connections;
  for (const pid_t pid : processes(mark))
    for (const Listener& listener : listeners(pid)) connections.push_back(send_http(listener.port));
  EXPECT_FALSE(connections.empty());
  const auto start = Clock::now();
  const Result result = running.finish();
  EXPECT_LT(seconds_since(start), 25);
  EXPECT_EQ(result.status, 0) << result.err;
  for (const int fd : connections) close(fd);
  wait_for_processes(mark, 0, 5);
  EXPECT_EQ(count_processes(mark), 0);
}
#endif

// Ranks that have started do not need it.
TEST(Standstill, StoppedMpirunKeepsNoJobFromEndingWell) {
  const std::string mark = new_mark();
  Launched running(
      {"-n", "2", "--cpu", "--env", mark, "sh", "-c", "sleep 1.5; echo done $CATENA_RANK"});
  wait_for_processes(mark, 7, 10);
  const pid_t mpirun = find_mpirun(mark);
  ASSERT_GT(mpirun, 0);
  kill(mpirun, SIGSTOP);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 0);
  for (const char* line : {"done 0\n", "[1] done 1\n"}) expect_contains(result.out, {line});
  expect_contains(result.err,
                  {"catena-run: all ranks ended well; mpirun (process " + std::to_string(mpirun) +
                   "), which is stopped (SIGSTOP), did not end within "});
  EXPECT_LT(result.seconds, 25);
  EXPECT_EQ(count_processes(mark), 0);
}

TEST(Standstill, StoppedMpirunIsNamedWhenARankProcessIsLost) {
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--env", mark, "sleep", "20"});
  wait_for_processes(mark, 5, 10);
  const pid_t mpirun = find_mpirun(mark);
  ASSERT_GT(mpirun, 0);
  kill(mpirun, SIGSTOP);
  kill(find_rank_process(mark), SIGKILL);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 1);
  expect_contains(result.err, {"catena-run: mpirun (process " + std::to_string(mpirun) +
                               "), which is stopped (SIGSTOP), does not answer: "});
  EXPECT_LT(result.seconds, 25);
  EXPECT_EQ(count_processes(mark), 0);
}

// A job whose standard output goes to a pipe that nobody reads.
class Unread {
 public:
  explicit Unread(const std::string& mark) {
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    shell_ = fork();
    if (shell_ == 0) {
      dup2(ends_[1], STDOUT_FILENO);
      execl(CATENA_RUN, CATENA_RUN, "-n", "2", "--cpu", "--env", mark.c_str(), "yes", "line",
            nullptr);
      _exit(99);
    }
  }
  ~Unread() {
    close(ends_[0]);
    close(ends_[1]);
  }
  pid_t pid() const { return shell_; }
  // Its exit code, 128 + signal; -1 when it does not end in time.
  int wait_for(double seconds) const {
    const auto start = Clock::now();
    int status = 0;
    while (waitpid(shell_, &status, WNOHANG) == 0) {
      if (seconds_since(start) > seconds) return -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  pid_t shell_ = -1;
};

// As with "catena-run ... | less": what was printed waits, also when the program has ended.
TEST(Standstill, SlowReadersGetEverything) {
  for (const int lines : {60000, 400000}) {
    Launched running({"-n", "1", "--cpu", "seq", std::to_string(lines)});
    std::this_thread::sleep_for(std::chrono::seconds(5));
    const Result result = running.finish();
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), lines);
    EXPECT_TRUE(result.out.ends_with("\n" + std::to_string(lines) + "\n"));
  }
}

TEST(Standstill, SignalsActWhileNobodyReadsTheOutput) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string mark = new_mark();
    const Unread job(mark);
    wait_for_processes(mark, 5, 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    kill(job.pid(), signal);
    EXPECT_EQ(job.wait_for(6), 128 + signal);
    EXPECT_EQ(count_processes(mark), 0);
  }
}

TEST(Standstill, OutputThatCannotBeWrittenIsSaid) {
  const std::string command = std::string(CATENA_RUN) +
                              " -n 2 --cpu sh -c 'echo x; sleep 60' 2>&1 >/dev/full | grep -q "
                              "'^catena-run: standard output cannot be written: No space left'";
  const auto start = Clock::now();
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_LT(seconds_since(start), 40);
}

// Time to save ------------------------------------------------------------------------------------

// A program that needs 4 s to end after SIGTERM.
std::string slow_saver(const std::string& folder) {
  return "trap 'trap : TERM; sleep 4; touch " + folder +
         "/saved-$CATENA_RANK; echo saved-$CATENA_RANK; exit 0' TERM; touch " + folder +
         "/ready-$CATENA_RANK; "
         "while :; do sleep 0.1; done";
}

void expect_time_to_save(bool to_whole_job) {
  const TempFolder temporary;
  const std::string folder = temporary.path();
  const std::string mark = new_mark();
  Launched running(
      {"-n", "2", "--cpu", "--grace", "60", "--env", mark, "bash", "-c", slow_saver(folder)});
  for (const char* name : {"/ready-0", "/ready-1"})
    while (!fs::exists(folder + name)) running.read_for(0.05);
  const auto start = Clock::now();
  if (to_whole_job)
    for (const pid_t pid : processes(mark)) kill(pid, SIGTERM);
  kill(running.pid(), SIGTERM);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 143) << result.err;
  EXPECT_LT(seconds_since(start), 40) << "it does not wait longer than the programs need";
  for (const char* name : {"saved-0", "saved-1"}) {
    EXPECT_TRUE(fs::exists(folder + "/" + name)) << name;
    // mpirun, which is ending too, hands nothing on.
    expect_contains(result.out, {name});
  }
  EXPECT_EQ(count_processes(mark), 0);
}

// The ranks act on it before catena-run does, whose own signal is then no second request.
TEST(Grace, SigtermToTheRanksAndThenToTheLauncherIsOneRequest) {
  const std::string mark = new_mark();
  Launched running({"-n", "2", "--cpu", "--grace", "60", "--env", mark, "bash", "-c",
                    "trap 'echo saving; sleep 2; echo saved $CATENA_RANK; exit 0' TERM; "
                    "echo ready $CATENA_RANK; while :; do sleep 0.1; done"});
  running.read_for(10, "ready 0\n");
  running.read_for(10, "ready 1\n");
  kill(find_rank_process(mark), SIGTERM);
  running.read_for(10, "[1] saving\n");
  kill(running.pid(), SIGTERM);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 143);
  for (const char* line : {"saved 0\n", "[1] saved 1\n"}) expect_contains(result.out, {line});
  expect_contains(result.err, {"stopped by SIGTERM"});
}

TEST(Grace, RanksGetTheTimeAfterSigtermToTheLauncher) { expect_time_to_save(false); }
TEST(Grace, RanksGetTheTimeAfterSigtermToTheWholeJob) { expect_time_to_save(true); }

// Limits ------------------------------------------------------------------------------------------

TEST(Limits, AsManyOpenFilesAsTheCheckAsksForAreEnough) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int ranks = 8;
  rlimit few{4 * ranks + 32, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const Result enough = run({"-n", std::to_string(ranks), "--cpu", "true"});
  const Result more = run({"-n", std::to_string(ranks + 1), "--cpu", "true"});
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(enough.status, 0) << enough.err;
  EXPECT_EQ(more.status, 2);
  expect_contains(more.err, {"ulimit -n 68"});
}

}  // namespace
}  // namespace catena::launch::test
