#include "supervisor.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "board_name.h"
#include "chatter.h"
#include "console.h"
#include "frame.h"
#include "job_watch.h"
#include "mpirun_process.h"
#include "output.h"
#include "process.h"
#include "program_digest.h"
#include "report_hosts.h"
#include "status/status_board.h"
#include "text.h"

namespace catena::launch {
namespace {

// Seconds after the job was told to stop. Rank processes kill their programs when the time that
// --grace gives is over; what follows is for rank processes and mpirun that do not do their part.
constexpr double kWaitForStart = 1.0;
constexpr double kRepeatStop = 0.5;
// In addition to the time that the ranks get.
constexpr double kKillRankProcesses = 1.0;
constexpr double kKillMpirun = 1.3;
// Once all ranks have ended: how long mpirun may take to end as well, by itself and after a stop.
constexpr double kMpirunEnd = 10.0;
constexpr double kMpirunEndAfterStop = 2.0;
constexpr double kLook = 1.0;   // between looks at whether the job stands still
constexpr double kDrain = 0.5;  // for a reader that stands still, after a signal
constexpr double kRetry = 2.0;  // between attempts to reach hosts that do not answer yet
// How long output is read after mpirun has ended, should something keep its pipes open.
constexpr double kReadAfterEnd = 1.0;
constexpr double kNever = 1e18;

class Supervisor {
 public:
  Supervisor(const Job& job, SignalQueue& signals);
  int run();

 private:
  void run_mpirun();
  bool must_retry() const;
  bool wait_to_retry();
  void watch();
  bool all_gone() const;
  void end_leftovers();
  void end_mpirun();
  void check_output();
  void take_line(std::string_view line);
  void release_lines();
  void pump();
  bool read_from(Descriptor& source, MpirunChatter* plain, FrameDecoder* frames);
  void print(Stream stream, std::string_view bytes);
  void take_bytes(int rank, Stream stream, std::string_view bytes);
  void note_life(int rank, bool sign_of_life);
  void take_record(std::string_view line);
  void take_hello(const HelloRecord& hello);
  void take_end(const EndRecord& end);
  void check_digest(const HelloRecord& hello);
  void check_start();
  void handle_signals();
  void stop();
  void give_up(const std::string& error);
  const comm::StatusBoard* board() const { return board_ ? &*board_ : nullptr; }
  bool all_started() const;
  bool none_started() const;
  void stop_at_once();
  bool all_here() const;
  void signal_all(int signal);
  void signal_local(int signal);
  void enforce_stop();
  void note_silences();
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
  Output output_queue_;
  JobWatch watch_;
  // What mpirun says before the first rank is there: nothing to show if another attempt follows.
  std::optional<std::vector<std::string>> held_lines_;
  double next_look_ = 0;
  double all_ended_ = kNever;
  double start_deadline_;
  double stop_time_ = 0;     // 0: not stopping
  double stop_at_ = kNever;  // a rank failed, the others are to be stopped by then
  double repeat_stop_at_ = kNever;
  double read_deadline_ = kNever;
  std::string said_reason_;  // why hosts were not reached, as printed last
  bool killed_rank_processes_ = false;
  bool killed_mpirun_ = false;
};

Supervisor::Supervisor(const Job& job, SignalQueue& signals)
    : job_(job),
      signals_(signals),
      console_(job.terminal,
               [this](Stream stream, std::string_view bytes) { print(stream, bytes); }),
      chatter_([this](std::string_view line) { take_line(line); }, job.planned_hosts),
      frames_(
          job.id,
          [this](int rank, Stream stream, std::string_view bytes) {
            take_bytes(rank, stream, bytes);
          },
          [this](std::string_view bytes) { chatter_.feed(bytes); }),
      watch_(job.timeout, host_),
      start_deadline_(monotonic_seconds() + job.start_timeout) {
  if (!job.planned_hosts.empty()) held_lines_.emplace();
  outcome_.network = job.network;
  outcome_.ranks.resize(static_cast<std::size_t>(job.ranks));
  outcome_.planned_hosts = job.planned_hosts;
}

int Supervisor::run() {
  ::signal(SIGPIPE, SIG_IGN);
  // What mpirun leaves behind when it is killed, such as ssh, becomes a child of this process.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  do run_mpirun();
  while (must_retry() && wait_to_retry());
  release_lines();
  console_.finish();
  end_leftovers();
  // The rank processes have removed the name, unless not all of them came to be.
  comm::StatusBoard::unlink(board_name(job_.id));
  outcome_.final_silences = watch_.silences(outcome_.ranks, monotonic_seconds());
  if (stop_time_ != 0) note_silences();
  Report report = make_report(outcome_);
  // mpirun's own words are all there is to say if nobody else said anything.
  if (report.text.starts_with("catena-run: mpirun ended"))
    report.text = chatter_.withheld() + report.text;
  output_queue_.add(Stream::error, describe_logs(outcome_) + report.text);
  output_queue_.drain(signals_, outcome_.stop_signal != 0 ? kDrain : kNever);
  return report.exit_code;
}

void Supervisor::run_mpirun() {
  MpirunProcess started = start_mpirun(job_, signals_);
  mpirun_ = started.pid;
  output_ = std::move(started.output);
  error_ = std::move(started.error);
  while (!(mpirun_ended_ && !output_.open() && !error_.open())) pump();
  frames_.finish();
  chatter_.finish();
  outcome_.hints = chatter_.hints();
}

// Hosts that are just starting refuse ssh for a while.
bool Supervisor::must_retry() const {
  return none_started() && stop_time_ == 0 && outcome_.mpirun_status != 0 &&
         outcome_.hints.unreached_for_now && monotonic_seconds() + kRetry < start_deadline_;
}

bool Supervisor::wait_to_retry() {
  const std::string left = std::to_string(std::lround(start_deadline_ - monotonic_seconds()));
  const std::string& reason = outcome_.hints.unreached_reason;
  if (reason != said_reason_)
    console_.add_line("catena-run: " + reason + "; trying again for " + left +
                      " s (--start-timeout)");
  said_reason_ = reason;
  for (const double until = monotonic_seconds() + kRetry;
       monotonic_seconds() < until && stop_time_ == 0;) {
    output_queue_.flush();
    pollfd source{signals_.fd(), POLLIN, 0};
    poll(&source, 1, 100);
    if (source.revents) handle_signals();
  }
  if (stop_time_ != 0) return false;
  held_lines_.emplace();
  chatter_.forget();
  mpirun_ended_ = false;
  read_deadline_ = kNever;
  outcome_.mpirun_status = 0;
  return true;
}

// What a mpirun that was killed has left: rank processes, which end their programs and are given
// the time to, and others such as ssh.
void Supervisor::end_leftovers() {
  std::vector<int> ranks;
  for (const RankOutcome& rank : outcome_.ranks)
    if (is_here(rank)) ranks.push_back(rank.hello->pid);
  wait_for_children(ranks, job_.grace + kKillRankProcesses);
  kill_children();
}

// Lines of mpirun itself.
void Supervisor::take_line(std::string_view line) {
  if (held_lines_) return void(held_lines_->emplace_back(line));
  console_.add_line(line);
}

void Supervisor::release_lines() {
  if (!held_lines_) return;
  const std::vector<std::string> lines = std::move(*held_lines_);
  held_lines_.reset();
  for (const std::string& line : lines) console_.add_line(line);
}

void Supervisor::print(Stream stream, std::string_view bytes) { output_queue_.add(stream, bytes); }

void Supervisor::check_output() {
  output_queue_.flush();
  if (output_queue_.failure() == 0 || outcome_.stop_signal != 0) return;
  if (output_queue_.failure() != EPIPE)
    return give_up(std::string("standard output cannot be written: ") +
                   std::strerror(output_queue_.failure()));
  // Nobody reads the output any more, as in "catena-run ... | head".
  outcome_.stop_signal = SIGPIPE;
  stop();
}

double Supervisor::next_deadline() const {
  double deadline = std::min({start_deadline_, read_deadline_, stop_at_, next_look_});
  if (!all_here()) deadline = std::min(deadline, repeat_stop_at_);
  if (stop_time_ != 0 && !killed_rank_processes_)
    deadline = std::min(deadline, stop_time_ + job_.grace + kKillRankProcesses);
  if (stop_time_ != 0 && !killed_mpirun_)
    deadline = std::min(deadline, stop_time_ + job_.grace + kKillMpirun);
  return deadline;
}

void Supervisor::pump() {
  // A job that is being ended goes on whether or not anybody reads what it says.
  const bool reading = !output_queue_.full() || stop_time_ != 0;
  const short readable = reading ? POLLIN : 0;
  std::array<pollfd, 4> sources = {{{signals_.fd(), POLLIN, 0},
                                    {reading ? output_.get() : -1, readable, 0},
                                    {reading ? error_.get() : -1, readable, 0},
                                    {output_queue_.fd(), POLLOUT, 0}}};
  const double wait = next_deadline() - monotonic_seconds();
  poll(sources.data(), sources.size(),
       wait > 3600 ? -1 : std::max(0, static_cast<int>(wait * 1000) + 1));
  if (sources[1].revents) read_from(output_, &chatter_, nullptr);
  if (sources[2].revents) read_from(error_, nullptr, &frames_);
  check_output();
  if (sources[0].revents) handle_signals();
  if (!reading) watch_.forget_silence(monotonic_seconds());
  check_start();
  watch();
  if (stop_at_ != kNever && (all_started() || monotonic_seconds() >= stop_at_)) stop();
  enforce_stop();
  if (monotonic_seconds() >= read_deadline_) {
    output_.reset();
    error_.reset();
  }
}

// What no rank can notice or report.
void Supervisor::watch() {
  const double now = monotonic_seconds();
  if (mpirun_ended_ || now < next_look_) return;
  next_look_ = now + kLook;
  const double allowed = stop_time_ != 0 ? kMpirunEndAfterStop : kMpirunEnd;
  if (stop_time_ != 0 && all_ended_ == kNever && all_gone()) all_ended_ = now;
  if (now >= all_ended_ + allowed) end_mpirun();
  if (stop_time_ != 0) return;
  outcome_.standstill = watch_.look(outcome_.ranks, board(), mpirun_, now);
  if (!outcome_.standstill) return;
  JobWatch::note_operations(outcome_.ranks, board(), host_);
  stop();
}

// Whether no rank process is left; a mpirun that is ending itself does not hand their records on.
bool Supervisor::all_gone() const {
  return std::all_of(outcome_.ranks.begin(), outcome_.ranks.end(), [this](const RankOutcome& rank) {
    const char state = is_here(rank) ? comm::process_state(rank.hello->pid) : 'R';
    return state == '\0' || state == 'Z';
  });
}

void Supervisor::end_mpirun() {
  if (mpirun_ended_ || killed_mpirun_) return;
  killed_mpirun_ = true;
  kill(-mpirun_, SIGKILL);
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
  note_life(rank, false);
  if (stream != Stream::record) return console_.add(rank, stream, bytes);
  std::string& partial = partial_records_[rank];
  partial += bytes;
  for (std::size_t end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
    const std::string line = partial.substr(0, end);
    partial.erase(0, end + 1);
    if (is_alive(line)) note_life(rank, true);
    take_record(line);
  }
}

void Supervisor::note_life(int rank, bool sign_of_life) {
  if (rank < 0 || rank >= job_.ranks) return;
  const auto& hello = outcome_.ranks[static_cast<std::size_t>(rank)].hello;
  if (hello) watch_.heard_of(hello->host, sign_of_life, monotonic_seconds());
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
  release_lines();
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

bool Supervisor::none_started() const {
  return std::none_of(outcome_.ranks.begin(), outcome_.ranks.end(),
                      [](const RankOutcome& rank) { return rank.hello.has_value(); });
}

void Supervisor::check_digest(const HelloRecord& hello) {
  if (hello.digest.empty()) return;
  digests_[hello.host] = hello.digest;
  const auto& [first_host, first] = *digests_.begin();
  for (const auto& [host, digest] : digests_)
    if (const auto difference = describe_difference(first_host, first, host, digest))
      return give_up(*difference);
}

void Supervisor::take_end(const EndRecord& end) {
  if (end.rank < 0 || end.rank >= job_.ranks) return;
  outcome_.ranks[static_cast<std::size_t>(end.rank)].end = end;
  if (std::all_of(outcome_.ranks.begin(), outcome_.ranks.end(),
                  [](const RankOutcome& rank) { return rank.end.has_value(); }))
    all_ended_ = monotonic_seconds();
  if (!failed(end) || stop_time_ != 0) return;
  JobWatch::note_operations(outcome_.ranks, board(), host_);
  if (stop_at_ == kNever) note_silences();
  // Ranks that are still being started could not be told to stop, nor say how they fared.
  stop_at_ = std::min(stop_at_, monotonic_seconds() + kWaitForStart);
}

bool Supervisor::is_here(const RankOutcome& rank) const {
  return rank.hello && rank.hello->host == host_;
}

void Supervisor::check_start() {
  if (monotonic_seconds() < start_deadline_) return;
  start_deadline_ = kNever;
  give_up(describe_missing(outcome_, job_.start_timeout));
}

// At the first failure, and at the end for the hosts that were silent then and still are.
void Supervisor::note_silences() {
  auto silences = watch_.silences(outcome_.ranks, monotonic_seconds());
  if (outcome_.silences_time != 0)
    std::erase_if(silences,
                  [this](const auto& one) { return !outcome_.silences.contains(one.first); });
  outcome_.silences = std::move(silences);
  outcome_.silences_time = wall_ns();
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
      // Killed here after all ranks had ended, it has nothing to say about them.
      const bool too_slow = killed_mpirun_ && all_ended_ != kNever;
      outcome_.mpirun_status = too_slow              ? 0
                               : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                     : WEXITSTATUS(status);
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
  if (outcome_.silences_time == 0) note_silences();
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
  // Before the first rank has started there is nobody to hand it on to.
  kill(mpirun_, none_started() ? SIGTERM : signal);
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
  if (waited >= job_.grace + kKillRankProcesses && !killed_rank_processes_) {
    killed_rank_processes_ = true;
    signal_local(SIGKILL);  // their programs die with them
  }
  if (waited >= job_.grace + kKillMpirun) end_mpirun();
}

}  // namespace

int run_job(const Job& job, SignalQueue& signals) { return Supervisor(job, signals).run(); }

}  // namespace catena::launch
