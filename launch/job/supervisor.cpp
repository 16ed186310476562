#include "job/supervisor.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "catena/core/printable.h"
#include "job/console.h"
#include "job/incoming.h"
#include "job/job_states.h"
#include "job/job_watch.h"
#include "job/output.h"
#include "job/rank_pipe.h"
#include "job/rank_signals.h"
#include "job/rank_state.h"
#include "job/report.h"
#include "job/report_hosts.h"
#include "job/starter_process.h"
#include "job/stop_requests.h"
#include "status/status_board.h"
#include "wire/board_name.h"
#include "wire/output_frames.h"

namespace catena::launch {
namespace {

// Seconds after the job was asked to stop. Rank processes kill their programs when the time that
// --grace gives is over; what follows is for rank processes and starters that do not do their part.
constexpr double kWaitForStart = 1.0;
constexpr double kRepeatStop = 0.5;
// In addition to the time that the ranks get.
constexpr double kKillRankProcesses = 1.0;
constexpr double kKillStarter = 1.3;
// Once all ranks have ended: how long the starter may take to end as well, by itself and after a
// stop.
constexpr double kStarterEnd = 10.0;
constexpr double kStarterEndAfterStop = 2.0;
constexpr double kCheck = 1.0;  // between checks whether the job hangs
constexpr double kDrain = 0.5;  // for a reader that does not read, after a signal
constexpr double kRetry = 2.0;  // between attempts to reach hosts that do not answer yet
// How long output is read after the starter has ended, should something keep its pipes open.
constexpr double kReadAfterEnd = 1.0;

class Supervisor {
 public:
  Supervisor(JobSpec spec, const Starter& starter, SignalQueue& signals);
  Attempt run();

 private:
  FrameDecoder decoder();
  void run_starter();
  bool must_retry() const;
  bool wait_to_retry();
  void wait_for_reader();
  void watch();
  void expect_end_of_starter(double now);
  bool all_gone() const;
  void end_leftovers();
  void kill_starter();
  void check_output();
  void pump();
  void take_bytes(int rank, Stream stream, std::string_view bytes);
  void note_life(int rank, bool sign_of_life);
  void take(const StartReport& start);
  void take(const EndReport& end);
  void prepare_stop();
  void check_start();
  void handle_signals();
  void take_request(int signal);
  void stop();
  void give_up(GivenUp why);
  const comm::StatusBoard* board() const { return board_ ? &*board_ : nullptr; }
  void stop_at_once();
  void signal_all(int here, int by_starter);
  void signal_local(int signal);
  void let_go();
  void enforce_stop();
  void note_silences();
  double next_deadline() const;

  JobSpec spec_;
  const Starter& starter_;
  SignalQueue& signals_;
  Console console_;
  std::unique_ptr<StarterOutput> messages_;
  StarterLines lines_;
  FrameDecoder frames_;       // in the starter's standard error
  FrameDecoder pipe_frames_;  // in the pipe
  RankPipe pipe_;
  Descriptor output_;
  Descriptor error_;
  pid_t starter_pid_ = -1;
  bool starter_ended_ = false;
  JobOutcome outcome_;
  ReportLines reports_;
  HostDigests digests_;
  std::optional<comm::StatusBoard> board_;
  std::string host_ = host_name();
  RankSignals rank_signals_;
  Output output_queue_;
  JobWatch watch_;
  OtherStates other_states_;
  double next_check_ = 0;
  double began_ = monotonic_seconds(), all_ended_ = kNever;
  double start_deadline_;
  double stop_time_ = 0;     // 0: not stopping
  double stop_at_ = kNever;  // a rank failed, the others are to be stopped by then
  double repeat_stop_at_ = kNever, kill_group_at_ = kNever, read_deadline_ = kNever;
  double leave_by_ = kNever;  // rank processes that have outlived the starter
  StopRequests requests_;
  int asked_ = 0;            // the signal of the first request
  std::string said_reason_;  // why hosts were not reached, as printed last
  bool killed_rank_processes_ = false, killed_starter_ = false;
};

Supervisor::Supervisor(JobSpec spec, const Starter& starter, SignalQueue& signals)
    : spec_(std::move(spec)),
      starter_(starter),
      signals_(signals),
      console_(!spec_.terminal.empty(),
               [this](Stream stream, std::string_view bytes) { output_queue_.add(stream, bytes); }),
      lines_([this](std::string_view line) { console_.add_line(line); }),
      frames_(decoder()),
      pipe_frames_(decoder()),
      rank_signals_(outcome_, starter_, host_),
      watch_(spec_.timeout, host_),
      start_deadline_(monotonic_seconds() + spec_.start_timeout) {
  outcome_.terms = starter.terms();
  outcome_.start_timeout = spec_.start_timeout;
  outcome_.network = starter.describe_network(spec_);
  outcome_.transports = starter.describe_transports(spec_);
  outcome_.ranks.resize(static_cast<std::size_t>(spec_.ranks));
  outcome_.planned_hosts = host_of_each_rank(spec_.hosts, spec_.ranks);
  if (!outcome_.planned_hosts.empty()) lines_.hold();
}

FrameDecoder Supervisor::decoder() {
  return FrameDecoder(
      spec_.id,
      [this](int rank, Stream stream, std::string_view bytes) { take_bytes(rank, stream, bytes); },
      [this](std::string_view bytes) { messages_->feed(bytes); });
}

Attempt Supervisor::run() {
  ::signal(SIGPIPE, SIG_IGN);
  // What a starter leaves behind when it is killed, such as ssh, becomes a child of this process.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  do run_starter();
  while (must_retry() && wait_to_retry());
  lines_.release();
  console_.finish();
  check_output();  // of what had no line end
  end_leftovers();
  // The rank processes have removed the name, unless not all of them came to be.
  comm::StatusBoard::unlink(board_name(spec_.id));
  outcome_.final_silences = watch_.silences(outcome_.ranks, monotonic_seconds());
  if (stop_time_ != 0) note_silences();
  const Report report = make_report(outcome_);
  const bool more = !spec_.trace.empty() || spec_.restart.value_or(0) > 0;  // job/restarts.cpp
  output_queue_.add_last(printable(describe_logs(outcome_)) + report.text, more);
  output_queue_.drain(signals_, outcome_.stop_signal != 0 ? kDrain : kNever);
  return {std::move(outcome_), report, monotonic_seconds() - began_, asked_};
}

void Supervisor::run_starter() {
  pipe_ = RankPipe::make();
  spec_.rank_pipe = pipe_.name();
  outcome_.words = {};
  messages_ = starter_.read_output(spec_, [this](std::string_view line) {
    lines_.add(line);
    outcome_.words.add(line);
  });
  StarterProcess started = start_starter(spec_, starter_.command(spec_), signals_);
  starter_pid_ = started.pid;
  output_ = std::move(started.output);
  error_ = std::move(started.error);
  while (!(starter_ended_ && !output_.open() && !error_.open() && !pipe_.open())) pump();
  frames_.finish();
  pipe_frames_.finish();
  messages_->finish();
  outcome_.findings = messages_->findings();
  outcome_.withheld = messages_->withheld();
}

// Hosts that are just starting refuse ssh for a while.
bool Supervisor::must_retry() const {
  return none_started(outcome_) && stop_time_ == 0 && outcome_.starter_code != 0 &&
         outcome_.findings.unreached_for_now && monotonic_seconds() + kRetry < start_deadline_;
}

bool Supervisor::wait_to_retry() {
  const std::string left = std::to_string(std::lround(start_deadline_ - monotonic_seconds()));
  const std::string& reason = outcome_.findings.unreached_reason;
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
  lines_.hold();
  starter_ended_ = killed_starter_ = false;
  read_deadline_ = leave_by_ = all_ended_ = kNever;
  outcome_.starter_code = 0;
  return true;
}

// What a starter that was killed has left: rank processes, which end their programs and are given
// the time to, and others such as ssh.
void Supervisor::end_leftovers() {
  wait_for_children(rank_signals_.pids_here(), leave_by_ - monotonic_seconds());
  kill_children();
}

void Supervisor::check_output() {
  output_queue_.flush();
  if (output_queue_.failure() == 0 || outcome_.stop_signal != 0) return;
  if (output_queue_.failure() != EPIPE)
    return give_up({.why = GivenUp::Why::output_failed, .error = output_queue_.failure()});
  // Nobody reads the output any more, as in "catena-run ... | head".
  outcome_.stop_signal = SIGPIPE;
  stop();
}

double Supervisor::next_deadline() const {
  double deadline =
      std::min({start_deadline_, read_deadline_, leave_by_, stop_at_, next_check_, kill_group_at_});
  if (!rank_signals_.all_here()) deadline = std::min(deadline, repeat_stop_at_);
  if (stop_time_ == 0 || (killed_rank_processes_ && killed_starter_)) return deadline;
  const double wait = killed_rank_processes_ ? kKillStarter : kKillRankProcesses;
  return std::min(deadline, stop_time_ + spec_.grace_seconds() + wait);
}

void Supervisor::pump() {
  // A job that is being ended goes on whether or not anybody reads what it says.
  const bool reading = !output_queue_.full() || stop_time_ != 0;
  const short readable = reading ? POLLIN : 0;
  std::array<pollfd, 5> sources = {{{signals_.fd(), POLLIN, 0},
                                    {reading ? output_.get() : -1, readable, 0},
                                    {reading ? error_.get() : -1, readable, 0},
                                    {reading ? pipe_.reader().get() : -1, readable, 0},
                                    {output_queue_.fd(), POLLOUT, 0}}};
  poll_until(sources, next_deadline());
  if (sources[1].revents) messages_->feed(read_some(output_));
  if (sources[2].revents) frames_.feed(read_some(error_));
  if (sources[3].revents) pipe_frames_.feed(read_some(pipe_.reader()));
  check_output();
  if (sources[0].revents) handle_signals();
  if (!reading) wait_for_reader();
  check_start();
  watch();
  if (stop_at_ != kNever && (all_started(outcome_) || monotonic_seconds() >= stop_at_)) stop();
  enforce_stop();
  if (monotonic_seconds() >= kill_group_at_) {
    kill_group_at_ = kNever;
    kill(-starter_pid_, SIGKILL);
  }
  if (monotonic_seconds() >= read_deadline_) {
    output_.reset();
    error_.reset();
  }
  if (monotonic_seconds() >= leave_by_) pipe_.reader().reset();
}

// What has come but cannot be printed is no silence, and none of it may be lost.
void Supervisor::wait_for_reader() {
  const double now = monotonic_seconds();
  watch_.forget_silence(now);
  if (!starter_ended_) return;
  read_deadline_ = std::max(read_deadline_, now + kReadAfterEnd);
  leave_by_ = std::max(leave_by_, now + kReadAfterEnd);
}

// What no rank can notice or report.
void Supervisor::watch() {
  const double now = monotonic_seconds();
  if (starter_ended_ || now < next_check_) return;
  next_check_ = now + kCheck;
  other_states_.publish_late();
  expect_end_of_starter(now);
  if (stop_time_ != 0) return;
  outcome_.hang = watch_.check(outcome_.ranks, board(), starter_pid_, now);
  if (!outcome_.hang) return;
  requests_.note_failure();
  JobWatch::note_operations(outcome_.ranks, board(), host_);
  stop();
}

// Nobody needs it any more once all ranks have ended.
void Supervisor::expect_end_of_starter(double now) {
  const bool ending = stop_time_ != 0 || outcome_.ended_by_starter;
  if (ending && all_ended_ == kNever && all_gone()) all_ended_ = now;
  const double allowed = ending ? kStarterEndAfterStop : kStarterEnd;
  if (now < all_ended_ + allowed || killed_starter_) return;
  if (!ending) outcome_.stayed = watch_.describe_starter(starter_pid_, now - all_ended_);
  kill_starter();
}

// Whether no rank process is left; a starter that is ending itself does not hand their reports on.
bool Supervisor::all_gone() const {
  return std::all_of(outcome_.ranks.begin(), outcome_.ranks.end(), [this](const RankOutcome& rank) {
    return rank_signals_.is_here(rank) && has_ended(state_of(*rank.start));
  });
}

void Supervisor::kill_starter() {
  if (starter_ended_ || killed_starter_) return;
  killed_starter_ = true;
  kill_group_at_ = monotonic_seconds() + starter_.end(starter_pid_);
}

void Supervisor::take_bytes(int rank, Stream stream, std::string_view bytes) {
  note_life(rank, false);
  if (stream == Stream::error) messages_->see_error_of_rank(rank, bytes);
  if (stream != Stream::report) return console_.add(rank, stream, bytes);
  for (const RankReport& report : reports_.feed(rank, bytes)) {
    if (const auto* state = std::get_if<StateReport>(&report)) other_states_.note(*state);
    if (is_sign_of_life(report)) note_life(rank, true);
    if (std::holds_alternative<AskedReport>(report)) prepare_stop();
    if (const auto* start = std::get_if<StartReport>(&report)) take(*start);
    if (const auto* ended = std::get_if<EndReport>(&report)) take(*ended);
  }
}

void Supervisor::note_life(int rank, bool sign_of_life) {
  if (rank < 0 || rank >= spec_.ranks) return;
  const auto& start = outcome_.ranks[static_cast<std::size_t>(rank)].start;
  if (start) watch_.note_heard(start->host, sign_of_life, monotonic_seconds());
}

void Supervisor::take(const StartReport& start) {
  if (start.size != spec_.ranks || start.rank < 0 || start.rank >= spec_.ranks)
    return give_up({.why = GivenUp::Why::world_size, .world_size = start.size});
  RankOutcome& rank = outcome_.ranks[static_cast<std::size_t>(start.rank)];
  rank.start = start;
  lines_.release();
  if (!board_ && rank_signals_.is_here(rank) && !start.board.empty()) {
    try {
      board_ = comm::StatusBoard::attach(start.board);
    } catch (const std::exception&) {  // the report then relies on the end records
    }
  }
  if (auto difference = digests_.add(start))
    give_up({.why = GivenUp::Why::files_differ, .difference = std::move(*difference)});
  if (all_started(outcome_)) start_deadline_ = kNever;
}

void Supervisor::take(const EndReport& end) {
  if (end.rank < 0 || end.rank >= spec_.ranks) return;
  outcome_.ranks[static_cast<std::size_t>(end.rank)].end = end;
  other_states_.note_end(end.rank, !failed(end));
  if (all_ended(outcome_)) {
    all_ended_ = monotonic_seconds();
    if (stop_time_ != 0) let_go();
  }
  if (stop_time_ == 0 && end.stop_time != 0 && end.stop_signal == 0)
    outcome_.ended_by_starter = true;
  if (failed_unasked(end)) requests_.note_failure();
  if (!end.peer_error.empty() && !outcome_.hang)
    outcome_.hang = JobWatch::find_stopped_starter(starter_pid_, end.peer_error);
  if (failed(end)) prepare_stop();
}

// A rank failed, or somebody asked it to end.
void Supervisor::prepare_stop() {
  if (stop_time_ != 0) return;
  JobWatch::note_operations(outcome_.ranks, board(), host_);
  if (stop_at_ == kNever) note_silences();
  // Ranks that are still being started could not be asked to stop, nor report their end.
  stop_at_ = std::min(stop_at_, monotonic_seconds() + kWaitForStart);
}

void Supervisor::check_start() {
  if (monotonic_seconds() < start_deadline_) return;
  start_deadline_ = kNever;
  give_up({.why = GivenUp::Why::ranks_missing,
           .missing = ranks_not_started(outcome_),
           .silent = silent_hosts(outcome_)});
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

void Supervisor::give_up(GivenUp why) {
  if (stop_time_ != 0) return;
  requests_.note_failure();
  outcome_.given_up = std::move(why);
  stop();
}

void Supervisor::handle_signals() {
  for (int signal = signals_.next(); signal != 0; signal = signals_.next()) {
    if (signal == SIGCHLD) {
      int status = 0;
      if (waitpid(starter_pid_, &status, WNOHANG) != starter_pid_) continue;
      starter_ended_ = true;
      if (kill_group_at_ != kNever) kill_group_at_ = 0;  // at once: its helpers
      // Killed here after all ranks had ended, it has nothing to say about them.
      const bool too_slow = killed_starter_ && all_ended_ != kNever;
      outcome_.starter_code = too_slow ? 0 : starter_.exit_code(status);
      read_deadline_ = monotonic_seconds() + kReadAfterEnd;
      // Rank processes that outlive it have the time to save.
      pipe_.close_for_new_writers();
      leave_by_ = monotonic_seconds() + spec_.grace_seconds() + kKillRankProcesses;
    } else if (signal == SIGUSR1 || signal == SIGUSR2) {
      if (signal == SIGUSR1) console_.add_line(describe_now(spec_, board(), other_states_));
      if (!starter_ended_) starter_.signal_ranks(starter_pid_, step_of(outcome_), signal);
    } else {
      take_request(signal);
    }
  }
}

// Somebody asks catena-run to end the job.
void Supervisor::take_request(int signal) {
  const StopRequests::Answer answer = requests_.take();
  if (asked_ == 0) asked_ = signal;
  if (answer.at_once) return stop_at_once();
  if (answer.is_the_reason && outcome_.stop_signal == 0) outcome_.stop_signal = signal;
  stop();
}

// Tells every rank process to end its program.
void Supervisor::stop() {
  stop_at_ = kNever;
  if (stop_time_ != 0) return;
  stop_time_ = monotonic_seconds();
  if (outcome_.silences_time == 0) note_silences();
  repeat_stop_at_ = stop_time_ + kRepeatStop;
  start_deadline_ = kNever;
  signal_all(SIGALRM, SIGALRM);
  if (all_ended_ != kNever) let_go();
}

// All ranks have said how they ended, and none has to wait for others any more.
void Supervisor::let_go() { signal_all(SIGQUIT, SIGALRM); }

// A second Ctrl-C.
void Supervisor::stop_at_once() {
  signal_local(SIGQUIT);
  if (!rank_signals_.all_here() && !starter_ended_) kill(starter_pid_, SIGTERM);
}

// Rank processes of this host are notified directly, because the starter may be stuck. If there are
// others, or some whose whereabouts are unknown, the starter also hands the signal on to all.
void Supervisor::signal_all(int here, int by_starter) {
  signal_local(here);
  if (!starter_ended_) rank_signals_.send_by_starter(starter_pid_, by_starter);
}

void Supervisor::signal_local(int signal) {
  if (!starter_ended_ || pipe_.open()) rank_signals_.send_here(signal);
}

void Supervisor::enforce_stop() {
  if (stop_time_ == 0 || starter_ended_) return;
  const double waited = monotonic_seconds() - stop_time_;
  // mpirun forgets signals that come while it is still starting ranks; srun may be slow.
  if (monotonic_seconds() >= repeat_stop_at_ && !rank_signals_.all_here()) {
    repeat_stop_at_ = monotonic_seconds() + std::max(kRepeatStop, waited);
    signal_all(SIGALRM, SIGALRM);
  }
  if (waited >= spec_.grace_seconds() + kKillRankProcesses && !killed_rank_processes_) {
    killed_rank_processes_ = true;
    signal_local(SIGKILL);  // their programs die with them
  }
  if (waited >= spec_.grace_seconds() + kKillStarter) kill_starter();
}

}  // namespace

Attempt run_attempt(const JobSpec& spec, const Starter& starter, SignalQueue& signals) {
  return Supervisor(spec, starter, signals).run();
}

}  // namespace catena::launch
