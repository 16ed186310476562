#include "rank/rank_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/process.h"
#include "base/program_digest.h"
#include "base/text.h"
#include "rank/daemon_end.h"
#include "rank/log_file.h"
#include "rank/program_process.h"
#include "rank/rank_channel.h"
#include "rank/rank_identity.h"
#include "rank/shared_memory.h"
#include "status/status_board.h"
#include "wire/board_name.h"
#include "wire/job_words.h"
#include "wire/rank_report.h"

namespace catena::launch {
namespace {

using comm::Phase;
using comm::SlotSnapshot;
using comm::StatusBoard;

// From SIGTERM to SIGKILL when mpirun stops the job, which follows up with its own SIGKILL
// after 1 s.
constexpr double kGraceOfMpirun = 0.6;
// A program that has said why it fails is given this long to end with its own exit code.
constexpr double kOwnEnd = 1.0;
// How long a rank process whose program failed waits for the news that its report has arrived.
constexpr double kLinger = 3.0;
// In addition to the time that a stop gives: how long it stays for the reports of other ranks.
constexpr double kForOthers = 0.5;
// How long mpirun is waited for to take the last words; one that is ending takes none.
constexpr double kDrain = 2.0, kDrainOfMpirun = 0.3;
// How long output of the program is read once it has ended, should something keep its pipes open.
constexpr double kOutputAfterEnd = 0.6;
constexpr double kBeat = 1.0;  // between signs of life
constexpr int kBeatsPerState = 2;
constexpr std::size_t kTailBytes = 2000;

class RankProcess {
 public:
  explicit RankProcess(JobSpec spec)
      : spec_(std::move(spec)),
        signals_(
            {SIGTERM, SIGALRM, kStopOfSlurm, SIGQUIT, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}),
        channel_(spec_.rank_pipe) {}
  int run();

 private:
  void join();
  void enter_folder();
  void open_board();
  void open_log();
  void start();
  void pump();
  void add_to_log(Stream stream, std::string_view text);
  void show_life();
  bool watch_parent();
  void read_from(Descriptor& source, Stream stream);
  void handle_signals();
  bool is_outsider(int signal) const;
  void stop_for_outsider(int signal);
  void begin_stop(double grace);
  void terminate();
  void reap();
  void note_silent_leave();
  void note_shared_memory();
  void end_group();
  bool is_urgent() const;
  void hand_in();
  void describe_end();
  void linger();
  void wait_for_others();
  int fail_to_start(const UserError& error);
  template <typename Done, typename Take>
  void await_signals(double seconds, Done done, Take take);
  double next_deadline() const;

  JobSpec spec_;
  SignalQueue signals_;
  RankChannel channel_;
  RankIdentity identity_;
  std::optional<StatusBoard> board_;
  std::string board_path_;
  std::string log_path_;
  LogFile log_;
  EndReport end_;
  std::string tail_;  // of the program's standard error
  ProgramProcess program_;
  bool ended_ = false;
  bool mpirun_ends_ = false;
  bool told_ = false;         // to end, by the launcher or mpirun: they know
  bool let_go_ = false;       // the launcher has heard of all ranks
  pid_t parent_ = getppid();  // mpirun, or its daemon
  double terminate_at_ = kNever;
  double kill_at_ = kNever;
  double next_beat_ = kNever;
  int beats_ = 0;
  double parent_stopped_ = 0;   // since when
  double give_up_at_ = kNever;  // reading output that a left-over process keeps open
};

int RankProcess::run() {
  // mpirun or its daemon is the parent; without it nobody would end this process.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // What the program leaves behind becomes a child of this process and is ended with it.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    join();
    start();
    if (spec_.remote) next_beat_ = monotonic_seconds();
  } catch (const UserError& error) {
    return fail_to_start(error);
  }
  while (!(ended_ && program_.is_silent())) pump();
  end_group();
  if (end_.signal != 0 || end_.exit_code != 0) remove_shared_memory(identity_.local_rank);
  note_shared_memory();
  log_.finish();
  end_.log_problem = log_.problem();
  channel_.send(Stream::report, to_line(end_));
  hand_in();
  const int signal = end_.stop_signal != 0 ? end_.stop_signal : end_.signal;
  const int code = signal != 0 ? 128 + signal : end_.exit_code;
  if (code != 0 && !told_) linger();
  wait_for_others();
  // No word has come from the launcher, so that the host may be cut off.
  if (code != 0 && !told_ && spec_.remote) end_daemon_later(getppid(), spec_.grace_seconds());
  while (spec_.remote && watch_parent())
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // After a stop mpirun need not hear of failure: the launcher knows, and mpirun would only take
  // seconds to end what has ended.
  return told_ ? 0 : code;
}

// Everything that identifies this process and shows that it lives.
void RankProcess::join() {
  identity_ = rank_identity_from_environment(spec_.by_srun);
  channel_.set_sender(spec_.id, identity_.rank);
  end_.rank = identity_.rank;
  end_.host = identity_.host;
  enter_folder();
  open_board();
  open_log();
  StartReport start;
  start.rank = identity_.rank;
  start.size = identity_.size;
  start.local_rank = identity_.local_rank;
  start.local_size = identity_.local_size;
  start.pid = getpid();
  start.started = comm::process_life(getpid()).start;
  start.host = identity_.host;
  start.board = board_path_;
  start.log = log_path_;
  start.step = identity_.step;
  if (spec_.remote && identity_.local_rank == 0) start.digests = program_digests(spec_.program);
  channel_.send(Stream::report, to_line(start));
  prepare_environment(identity_, spec_, board_path_);
}

// Where a host has no such folder, Open MPI would start the program in the user's home.
void RankProcess::enter_folder() {
  if (spec_.folder.empty() || chdir(spec_.folder.c_str()) == 0) return;
  throw UserError("the working folder '" + spec_.folder + "' cannot be entered on host " +
                      identity_.host + ": " + std::strerror(errno) +
                      "; make it there, or start from a folder that all hosts have",
                  1);
}

// The board is opened under its name by all rank processes of the host and then loses the name;
// programs reach it through their parent's descriptor. So no way of dying leaves it behind.
void RankProcess::open_board() {
  try {
    StatusBoard::remove_stale(kBoardPrefix);
    const std::string name = board_name(spec_.id);
    board_ = StatusBoard::create(name, identity_.local_size);
    if (board_->arrive() == identity_.local_size) StatusBoard::unlink(name);
    board_path_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(board_->fd());
  } catch (const std::exception& error) {
    const std::string text =
        std::string("catena-run: no failure details of this rank: ") + error.what() + "\n";
    channel_.send(Stream::error, text);
  }
}

void RankProcess::open_log() {
  if (spec_.log_dir.empty()) return;
  std::error_code error, ignored;
  std::filesystem::create_directories(spec_.log_dir, error);
  if (error && !std::filesystem::is_directory(spec_.log_dir, ignored))
    throw UserError("cannot make the folder '" + spec_.log_dir + "' on host " + identity_.host +
                    ": " + error.message() + "; give another --log-dir");
  log_path_ = spec_.log_dir + "/rank-" + std::to_string(identity_.rank) + ".log";
  log_.open(log_path_, identity_.host);
}

int RankProcess::fail_to_start(const UserError& error) {
  end_.not_started = true;
  end_.error = error.what();
  end_.exit_code = error.exit_code();
  end_.end_time = wall_ns();
  channel_.send(Stream::report, to_line(end_));
  channel_.drain(2.0);
  linger();
  wait_for_others();
  return told_ ? 0 : error.exit_code();
}

void RankProcess::start() {
  program_ = start_program(spec_, identity_, signals_);
  if (!board_) return;
  comm::StatusSlot slot = board_->slot(identity_.local_rank);
  slot.set_identity(identity_.rank, program_.pid, identity_.host);
  if (board_->read(identity_.local_rank).phase == Phase::empty) slot.set_phase(Phase::launched);
}

double RankProcess::next_deadline() const {
  return std::min({terminate_at_, kill_at_, give_up_at_, next_beat_});
}

// Waits for output, signals and deadlines, and deals with what came.
void RankProcess::pump() {
  const short readable = channel_.full() ? 0 : POLLIN;
  std::array<pollfd, 4> sources = {{{signals_.fd(), POLLIN, 0},
                                    {program_.output.get(), readable, 0},
                                    {program_.error.get(), readable, 0},
                                    {channel_.pending() ? channel_.fd() : -1, POLLOUT, 0}}};
  poll_until(sources, next_deadline());
  channel_.flush();
  if (!readable && ended_ && !is_urgent()) give_up_at_ = monotonic_seconds() + kOutputAfterEnd;
  if (readable && sources[1].revents) read_from(program_.output, Stream::output);
  if (readable && sources[2].revents) read_from(program_.error, Stream::error);
  if (sources[0].revents) handle_signals();
  if (monotonic_seconds() >= terminate_at_) {
    terminate_at_ = kNever;
    terminate();
  }
  if (monotonic_seconds() >= kill_at_) {
    kill_at_ = kNever;
    program_.signal(SIGKILL);
  }
  if (monotonic_seconds() >= next_beat_) {
    next_beat_ = monotonic_seconds() + kBeat;
    show_life();
    watch_parent();
  }
  if (monotonic_seconds() >= give_up_at_) {
    program_.output.reset();
    program_.error.reset();
  }
}

// From this the launcher knows that the host and the connection to it are alive. It cannot read the
// board of another host.
void RankProcess::show_life() {
  if (channel_.pending()) return;
  const bool tells = board_ && ++beats_ % kBeatsPerState == 0;
  channel_.send(Stream::report,
                tells ? to_line(state_of_slot(*board_, identity_.local_rank, comm::monotonic_ns()))
                      : to_line(AliveReport{}));
}

// A daemon of mpirun that is frozen passes nothing on, neither the word to stop. When the launcher
// has given up this host, so does the host. Nobody else ends the daemon, so this process stays as
// long. Whether the daemon is stopped.
bool RankProcess::watch_parent() {
  const char state = comm::process_state(getppid());
  const double now = monotonic_seconds();
  if (state != 'T' && state != 't') return parent_stopped_ = 0, false;
  if (parent_stopped_ == 0) parent_stopped_ = now;
  if (now - parent_stopped_ < spec_.timeout + comm::kOutsideMargin) return true;
  kill(getppid(), SIGKILL);
  told_ = true;
  begin_stop(kGraceOfMpirun);
  return false;
}

void RankProcess::read_from(Descriptor& source, Stream stream) {
  const std::string text = read_some(source);
  channel_.send(stream, text);
  add_to_log(stream, text);
  if (stream != Stream::error) return;
  tail_ += text;
  if (tail_.size() > 4 * kTailBytes) tail_.erase(0, tail_.size() - 2 * kTailBytes);
}

// Training goes on without its log, but not without a word.
void RankProcess::add_to_log(Stream stream, std::string_view text) {
  const bool whole = log_.problem().empty();
  log_.add(stream, text);
  if (!whole || log_.problem().empty()) return;
  channel_.send(Stream::error, "catena-run: " + log_.problem() + "\n");
  end_.log_problem = log_.problem();
}

void RankProcess::handle_signals() {
  for (int signal = signals_.next(); signal != 0; signal = signals_.next()) {
    if (signal == SIGCHLD) {
      reap();
    } else if (is_outsider(signal)) {
      stop_for_outsider(signal);
    } else if (signal == SIGALRM || signal == kStopOfSlurm) {
      told_ = true;
      begin_stop(spec_.grace_seconds());  // the launcher's word
    } else if (signal == SIGQUIT) {
      told_ = true;
      let_go_ = ended_;
      begin_stop(0);  // the same, impatient
    } else if (signal == SIGTERM || signal == SIGHUP) {
      told_ = true;
      mpirun_ends_ = !spec_.by_srun;
      begin_stop(mpirun_ends_ ? spec_.grace.value_or(kGraceOfMpirun) : spec_.grace_seconds());
    } else if (signal == SIGUSR1) {
      signal_handlers(program_.pid, signal);  // of others it would be the end
    } else if (signal == SIGUSR2) {
      program_.signal(signal);
    }
  }
}

// The launcher of this host marks its signals; mpirun or its daemon is the parent, and sends one
// when it dies, too.
bool RankProcess::is_outsider(int signal) const {
  if (signal != SIGALRM && signal != SIGQUIT && signal != SIGTERM && signal != SIGHUP) return false;
  const SignalSender& sender = signals_.sender();
  return !sender.marked && sender.pid != parent_;
}

// Somebody ended this process by mistake, or its host is being shut down. The launcher hears of it
// before the program ends, so that all ranks can save what they have.
void RankProcess::stop_for_outsider(int signal) {
  if (ended_ || end_.stop_time != 0) return;
  end_.stop_signal = signal;
  channel_.send(Stream::report, to_line(AskedReport{}));
  begin_stop(spec_.grace_seconds());
}

void RankProcess::begin_stop(double grace) {
  if (ended_) return;
  kill_at_ = std::min(kill_at_, monotonic_seconds() + grace);
  if (end_.stop_time != 0) return;
  end_.stop_time = wall_ns();
  describe_end();  // what it was doing before the signal
  const bool ending = !end_.error.empty() || !end_.peer_error.empty();
  if (ending && grace > kOwnEnd)
    terminate_at_ = monotonic_seconds() + kOwnEnd;
  else
    terminate();
}

void RankProcess::terminate() {
  if (ended_) return;
  program_.signal(SIGTERM);
  program_.signal(SIGCONT);
}

void RankProcess::reap() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    if (pid != program_.pid) continue;  // an orphan of the program
    end_.end_time = wall_ns();
    end_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    end_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end_.core_dumped = WIFSIGNALED(status) && WCOREDUMP(status);
    if (end_.exit_code == 0 && end_.signal == 0) note_silent_leave();
    if (end_.stop_time == 0) describe_end();
    ended_ = true;
    const bool well = end_.exit_code == 0 && end_.signal == 0;
    if (board_)
      board_->slot(identity_.local_rank).set_phase(well ? Phase::finished : Phase::failed);
    program_.signal(SIGTERM);
    kill_at_ = monotonic_seconds() + 0.3;
    give_up_at_ = monotonic_seconds() + kOutputAfterEnd;
  }
}

// The program ended with exit code 0. If it did so by a way that calls no exit handlers (_exit,
// quick_exit) while the other ranks may still need it, that is a failure, which nobody else
// reports.
void RankProcess::note_silent_leave() {
  if (!board_ || end_.stop_time != 0) return;
  const SlotSnapshot slot = board_->read(identity_.local_rank);
  if (slot.phase != Phase::joining && slot.phase != Phase::running) return;
  if (slot.own_failure.present || slot.peer_failure.present) return;
  board_->slot(identity_.local_rank)
      .fail("left the job by _exit(0) with its communicators open, which counts as exit code 1");
  end_.exit_code = 1;
}

// A rank ends with everything it started: the rest of its process group, and processes that left
// the group and have become children of this one.
void RankProcess::end_group() {
  describe_end();
  program_.signal(SIGKILL);
  kill_children();
}

// Whether the job ends, or must: it does not wait for somebody to read its output. Nor does a host
// whose connection may be what takes nothing.
bool RankProcess::is_urgent() const {
  const bool well = end_.signal == 0 && end_.exit_code == 0;
  return told_ || end_.stop_time != 0 || !well || !channel_.direct();
}

// Waits until the last words are taken. A launcher whose output nobody reads takes none for a
// while.
void RankProcess::hand_in() {
  double deadline = kNever;
  while (!channel_.drain(0.1)) {
    handle_signals();
    const double most = mpirun_ends_ ? kDrainOfMpirun : kDrain;
    if (is_urgent()) deadline = std::min(deadline, monotonic_seconds() + most);
    if (monotonic_seconds() >= deadline) return;
  }
}

// What the program itself held there is free again by now.
void RankProcess::note_shared_memory() {
  const bool connected =
      end_.phase != Phase::empty && end_.phase != Phase::launched && end_.phase != Phase::joining;
  if (end_.exit_code == 0 || connected) return;
  end_.shared_memory = shared_memory_problem(identity_.local_size);
}

// Copies from the board what the report will need.
void RankProcess::describe_end() {
  if (board_) {
    const SlotSnapshot slot = board_->read(identity_.local_rank);
    end_.error = slot.own_failure.text;
    end_.error_time = slot.own_failure.wall_ns;
    end_.peer_error = slot.peer_failure.text;
    end_.peer_error_time = slot.peer_failure.wall_ns;
    end_.culprit_rank = slot.peer_failure.present ? slot.peer_failure.blamed_rank : -1;
    // Asked for at the stop or at the end, whichever comes first; what came before it counts.
    if (!ended_) {
      end_.phase = slot.phase;
      end_.operation = slot.operation;
      end_.last_call = slot.last_call;
    }
  }
  if (end_.error.empty() && end_.peer_error.empty() && end_.signal == SIGABRT)
    end_.error = exception_text(tail_);
  end_.last_lines = last_lines_of(tail_, kTailBytes);
}

// Waits until it is done, for so many seconds at most, and takes the signals that come.
template <typename Done, typename Take>
void RankProcess::await_signals(double seconds, Done done, Take take) {
  const double deadline = monotonic_seconds() + seconds;
  while (!done() && monotonic_seconds() < deadline) {
    pollfd source{signals_.fd(), POLLIN, 0};
    poll(&source, 1, 100);
    for (int signal = signals_.next(); signal != 0; signal = signals_.next()) take(signal);
  }
}

// Waits for the launcher to act on the failure. If this process ended now, mpirun would end the
// others, which takes longer. Without an order from the launcher that is what happens.
void RankProcess::linger() {
  const auto take = [this](int signal) {
    let_go_ = let_go_ || signal == SIGQUIT || signal == SIGTERM;
    told_ = told_ || let_go_ || signal == SIGALRM || signal == kStopOfSlurm;
  };
  await_signals(
      kLinger, [this] { return told_; }, take);
}

// An mpirun that sees a process go whose program has not come to MPI_Finalize ends all others, and
// kills them before they can say how they end. So the processes of a job that is being stopped stay
// until the launcher has heard of all, and sends a further signal.
void RankProcess::wait_for_others() {
  if (!told_ || mpirun_ends_ || spec_.by_srun) return;
  const auto take = [this](int signal) {
    // The word to stop comes once from a launcher on this host; mpirun repeats it.
    const bool is_word = signal == SIGQUIT || (signal == SIGALRM && !channel_.direct());
    let_go_ = let_go_ || is_word || signal == SIGTERM || signal == SIGHUP;
  };
  await_signals(
      spec_.grace_seconds() + kForOthers, [this] { return let_go_; }, take);
}

}  // namespace

int run_rank_process(int argc, char** argv) {
  return RankProcess(parse_rank_process_words({argv + 1, argv + argc})).run();
}

}  // namespace catena::launch
