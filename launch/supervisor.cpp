#include "supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "../src/comm/status_board.h"
#include "board_name.h"
#include "chatter.h"
#include "console.h"
#include "frame.h"
#include "process.h"
#include "text.h"

namespace catena::launch {
namespace {

// Seconds after the job was told to stop. Rank processes kill their programs after 3 s; what
// follows is for rank processes and mpirun that do not do their part.
constexpr double kWaitForStart = 1.0;
constexpr double kRepeatStop = 0.5;
constexpr double kKillRankProcesses = 4.0;
constexpr double kKillMpirun = 4.3;
// How long output is read after mpirun has ended, should something keep its pipes open.
constexpr double kReadAfterEnd = 1.0;
constexpr double kNever = 1e18;

class Supervisor {
 public:
  Supervisor(const Job& job, SignalQueue& signals);
  Report run();

 private:
  void start();
  [[noreturn]] void become_mpirun(int output, int error);
  void pump();
  bool read_from(Descriptor& source, MpirunChatter* plain, FrameDecoder* frames);
  void print(Stream stream, std::string_view bytes);
  void take_bytes(int rank, Stream stream, std::string_view bytes);
  void take_record(std::string_view line);
  void take_hello(const HelloRecord& hello);
  void take_end(const EndRecord& end);
  void check_digest(const HelloRecord& hello);
  void check_start();
  void handle_signals();
  void stop();
  void give_up(const std::string& error);
  bool all_started() const;
  void stop_at_once();
  bool all_here() const;
  void signal_all(int signal);
  void signal_local(int signal);
  void enforce_stop();
  void note_operations();
  double next_deadline() const;
  bool is_here(const RankOutcome& rank) const;

  const Job& job_;
  SignalQueue& signals_;
  Console console_;
  MpirunChatter chatter_;
  FrameDecoder frames_;
  Descriptor output_;
  Descriptor error_;
  pid_t mpirun_ = -1;
  bool mpirun_ended_ = false;
  JobOutcome outcome_;
  std::map<int, std::string> partial_records_;
  std::map<std::string, std::string> digests_;  // by host
  std::optional<comm::StatusBoard> board_;
  std::string host_ = host_name();
  double start_deadline_;
  double stop_time_ = 0;     // 0: not stopping
  double stop_at_ = kNever;  // a rank failed, the others are to be stopped by then
  double repeat_stop_at_ = kNever;
  double read_deadline_ = kNever;
  bool killed_rank_processes_ = false;
  bool killed_mpirun_ = false;
};

Supervisor::Supervisor(const Job& job, SignalQueue& signals)
    : job_(job),
      signals_(signals),
      console_(job.terminal,
               [this](Stream stream, std::string_view bytes) { print(stream, bytes); }),
      chatter_([this](std::string_view line) { console_.add_line(line); }, job.planned_hosts),
      frames_(
          job.id,
          [this](int rank, Stream stream, std::string_view bytes) {
            take_bytes(rank, stream, bytes);
          },
          [this](std::string_view bytes) { chatter_.feed(bytes); }),
      start_deadline_(monotonic_seconds() + job.start_timeout) {
  outcome_.ranks.resize(static_cast<std::size_t>(job.ranks));
  outcome_.planned_hosts = job.planned_hosts;
}

Report Supervisor::run() {
  ::signal(SIGPIPE, SIG_IGN);
  start();
  while (!(mpirun_ended_ && !output_.open() && !error_.open())) pump();
  frames_.finish();
  chatter_.finish();
  console_.finish();
  // The rank processes have removed the name, unless not all of them came to be.
  comm::StatusBoard::unlink(board_name(job_.id));
  outcome_.hints = chatter_.hints();
  Report report = make_report(outcome_);
  // mpirun's own words are all there is to say if no rank said anything.
  const bool explained = outcome_.stop_signal != 0 || !outcome_.setup_error.empty() ||
                         report.text.find("failed first") != std::string::npos;
  if (report.exit_code != 0 && !explained) report.text = chatter_.withheld() + report.text;
  return report;
}

void Supervisor::start() {
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  mpirun_ = fork();
  if (mpirun_ < 0) throw UserError(std::string("cannot fork: ") + std::strerror(errno), 126);
  if (mpirun_ == 0) become_mpirun(output.write.get(), error.write.get());
  setpgid(mpirun_, mpirun_);
  output_ = std::move(output.read);
  error_ = std::move(error.read);
}

void Supervisor::become_mpirun(int output, int error) {
  // A process group of its own: Ctrl-C is ours to act on. As a background process it cannot read
  // the terminal, so it gets a standard input only when that is something else.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (isatty(STDIN_FILENO)) dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  signals_.restore_in_child();
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  for (const std::string& entry : job_.environment) putenv(strdup(entry.c_str()));
  std::vector<char*> words;
  for (const std::string& word : job_.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(job_.mpirun.c_str(), words.data());
  std::fprintf(stderr, "catena-run: cannot start %s: %s\n", job_.mpirun.c_str(),
               std::strerror(errno));
  _exit(127);
}

void Supervisor::print(Stream stream, std::string_view bytes) {
  const int fd = stream == Stream::output ? STDOUT_FILENO : STDERR_FILENO;
  if (write_all(fd, bytes) || stream != Stream::output || outcome_.stop_signal != 0) return;
  // Nobody reads the output any more, as in "catena-run ... | head".
  outcome_.stop_signal = SIGPIPE;
  stop();
}

double Supervisor::next_deadline() const {
  double deadline = std::min({start_deadline_, read_deadline_, stop_at_});
  if (!all_here()) deadline = std::min(deadline, repeat_stop_at_);
  if (stop_time_ != 0 && !killed_rank_processes_)
    deadline = std::min(deadline, stop_time_ + kKillRankProcesses);
  if (stop_time_ != 0 && !killed_mpirun_) deadline = std::min(deadline, stop_time_ + kKillMpirun);
  return deadline;
}

void Supervisor::pump() {
  std::array<pollfd, 3> sources = {
      {{signals_.fd(), POLLIN, 0}, {output_.get(), POLLIN, 0}, {error_.get(), POLLIN, 0}}};
  const double wait = next_deadline() - monotonic_seconds();
  poll(sources.data(), sources.size(),
       wait > 3600 ? -1 : std::max(0, static_cast<int>(wait * 1000) + 1));
  if (sources[1].revents) read_from(output_, &chatter_, nullptr);
  if (sources[2].revents) read_from(error_, nullptr, &frames_);
  if (sources[0].revents) handle_signals();
  check_start();
  if (stop_at_ != kNever && (all_started() || monotonic_seconds() >= stop_at_)) stop();
  enforce_stop();
  if (monotonic_seconds() >= read_deadline_) {
    output_.reset();
    error_.reset();
  }
}

bool Supervisor::read_from(Descriptor& source, MpirunChatter* plain, FrameDecoder* frames) {
  std::array<char, 65536> bytes;
  const ssize_t got = read(source.get(), bytes.data(), bytes.size());
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) {
    source.reset();
    return false;
  }
  const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
  if (plain) plain->feed(text);
  if (frames) frames->feed(text);
  return true;
}

void Supervisor::take_bytes(int rank, Stream stream, std::string_view bytes) {
  if (stream != Stream::record) return console_.add(rank, stream, bytes);
  std::string& partial = partial_records_[rank];
  partial += bytes;
  for (std::size_t end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
    const std::string line = partial.substr(0, end);
    partial.erase(0, end + 1);
    take_record(line);
  }
}

void Supervisor::take_record(std::string_view line) {
  if (is_hello(line)) take_hello(parse_hello(line));
  if (is_end(line)) take_end(parse_end(line));
}

void Supervisor::take_hello(const HelloRecord& hello) {
  if (hello.size != job_.ranks || hello.rank < 0 || hello.rank >= job_.ranks)
    return give_up("mpirun started a world of " + std::to_string(hello.size) + " ranks where " +
                   std::to_string(job_.ranks) +
                   " were asked for; check -n, the hosts and the batch system's allocation");
  RankOutcome& rank = outcome_.ranks[static_cast<std::size_t>(hello.rank)];
  rank.hello = hello;
  if (!board_ && is_here(rank) && !hello.board.empty()) {
    try {
      board_ = comm::StatusBoard::attach(hello.board);
    } catch (const std::exception&) {  // the report then relies on the end records
    }
  }
  check_digest(hello);
  if (all_started()) start_deadline_ = kNever;
}

bool Supervisor::all_started() const {
  return std::all_of(outcome_.ranks.begin(), outcome_.ranks.end(),
                     [](const RankOutcome& rank) { return rank.hello.has_value(); });
}

void Supervisor::check_digest(const HelloRecord& hello) {
  if (hello.digest.empty()) return;
  digests_[hello.host] = hello.digest;
  const auto& [first_host, first] = *digests_.begin();
  for (const auto& [host, digest] : digests_)
    if (digest != first)
      give_up("the program differs between hosts: " + first_host + " has " + first + ", " + host +
              " has " + digest + " (size-hash); copy the same file to all hosts");
}

void Supervisor::take_end(const EndRecord& end) {
  if (end.rank < 0 || end.rank >= job_.ranks) return;
  outcome_.ranks[static_cast<std::size_t>(end.rank)].end = end;
  if (!failed(end) || stop_time_ != 0) return;
  note_operations();
  // Ranks that are still being started could not be told to stop, nor say how they fared.
  stop_at_ = std::min(stop_at_, monotonic_seconds() + kWaitForStart);
}

// What the ranks of this host are doing at the moment, before the stop changes it.
void Supervisor::note_operations() {
  for (RankOutcome& rank : outcome_.ranks) {
    if (!board_ || !is_here(rank) || rank.end) continue;
    if (rank.hello->local_rank >= board_->slots()) continue;
    const comm::SlotSnapshot slot = board_->read(rank.hello->local_rank);
    rank.operation_then = slot.operation;
    if (slot.operation.empty() && !slot.last_call.empty())
      rank.operation_then = "after " + slot.last_call;
  }
}

bool Supervisor::is_here(const RankOutcome& rank) const {
  return rank.hello && rank.hello->host == host_;
}

void Supervisor::check_start() {
  if (monotonic_seconds() < start_deadline_) return;
  start_deadline_ = kNever;
  std::vector<int> missing;
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (!outcome_.ranks[static_cast<std::size_t>(rank)].hello) missing.push_back(rank);
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g", job_.start_timeout);
  const std::vector<std::string> hosts = silent_hosts(outcome_);
  give_up("ranks " + format_ranks(missing) + " of " + std::to_string(job_.ranks) +
          (hosts.empty() ? "" : " (of " + join(hosts, ", ") + ")") + " did not start within " +
          seconds +
          " s; check that the hosts answer to ssh without a password and have catena-run in the "
          "same place, or raise --start-timeout");
}

void Supervisor::give_up(const std::string& error) {
  if (stop_time_ != 0) return;
  outcome_.setup_error = error;
  stop();
}

void Supervisor::handle_signals() {
  for (int signal = signals_.next(); signal != 0; signal = signals_.next()) {
    if (signal == SIGCHLD) {
      int status = 0;
      if (waitpid(mpirun_, &status, WNOHANG) != mpirun_) continue;
      mpirun_ended_ = true;
      outcome_.mpirun_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      read_deadline_ = monotonic_seconds() + kReadAfterEnd;
    } else if (signal == SIGUSR1 || signal == SIGUSR2) {
      if (!mpirun_ended_) kill(mpirun_, signal);  // mpirun hands these on to all ranks
    } else {
      if (stop_time_ != 0) {
        stop_at_once();
        continue;
      }
      outcome_.stop_signal = signal;
      stop();
    }
  }
}

// Tells every rank process to end its program.
void Supervisor::stop() {
  stop_at_ = kNever;
  if (stop_time_ != 0) return;
  stop_time_ = monotonic_seconds();
  repeat_stop_at_ = stop_time_ + kRepeatStop;
  start_deadline_ = kNever;
  signal_all(SIGALRM);
}

// A second Ctrl-C.
void Supervisor::stop_at_once() {
  signal_local(SIGQUIT);
  if (!all_here() && !mpirun_ended_) kill(mpirun_, SIGTERM);
}

bool Supervisor::all_here() const {
  return std::all_of(outcome_.ranks.begin(), outcome_.ranks.end(),
                     [this](const RankOutcome& rank) { return is_here(rank); });
}

// Rank processes of this host are told directly, for mpirun may be stuck. If there are others, or
// some whose whereabouts are unknown, mpirun also hands the signal on to all.
void Supervisor::signal_all(int signal) {
  signal_local(signal);
  if (all_here() || mpirun_ended_) return;
  const bool none = std::none_of(outcome_.ranks.begin(), outcome_.ranks.end(),
                                 [](const RankOutcome& rank) { return rank.hello.has_value(); });
  // Before the first rank has started there is nobody to hand it on to.
  kill(mpirun_, none ? SIGTERM : signal);
}

void Supervisor::signal_local(int signal) {
  if (mpirun_ended_) return;
  for (const RankOutcome& rank : outcome_.ranks)
    if (is_here(rank)) kill(rank.hello->pid, signal);
}

void Supervisor::enforce_stop() {
  if (stop_time_ == 0 || mpirun_ended_) return;
  const double waited = monotonic_seconds() - stop_time_;
  // mpirun forgets signals that come while it is still starting ranks.
  if (monotonic_seconds() >= repeat_stop_at_ && !all_here()) {
    repeat_stop_at_ = monotonic_seconds() + kRepeatStop;
    signal_all(SIGALRM);
  }
  if (waited >= kKillRankProcesses && !killed_rank_processes_) {
    killed_rank_processes_ = true;
    signal_local(SIGKILL);  // their programs die with them
  }
  if (waited >= kKillMpirun && !killed_mpirun_) {
    killed_mpirun_ = true;
    kill(-mpirun_, SIGKILL);
  }
}

}  // namespace

Report run_job(const Job& job, SignalQueue& signals) { return Supervisor(job, signals).run(); }

}  // namespace catena::launch
