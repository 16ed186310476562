#include "job/restarts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "catena/core/printable.h"
#include "job/trace_join.h"
#include "wire/board_name.h"

namespace catena::launch {
namespace {

using Ending = Verdict::Ending;

// A program that has not come to its first collective by then is no program that fails at once.
constexpr double kEarly = 10;
// The shell's for wrong usage: the same words give the same end.
constexpr int kWrongUsage = 2;

std::string seconds_of(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", seconds);
  return text;
}

// Without "catena-run: " and line end. What mpirun said itself may stand before it.
std::string first_line(const std::string& report) {
  const std::string start = "catena-run: ";
  const std::size_t at = report.find(start);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + start.size();
  return report.substr(begin, report.find('\n', begin) - begin);
}

std::string why_given_up(const GivenUp& given_up) {
  switch (given_up.why) {
    case GivenUp::Why::ranks_missing: return "";
    case GivenUp::Why::world_size: return "the starter would make a world of the wrong size again";
    case GivenUp::Why::files_differ: return "the files of the hosts would differ again";
    case GivenUp::Why::output_failed: break;
  }
  return "standard output cannot be written";
}

std::string why_hopeless(const JobOutcome& job, const Verdict& verdict) {
  switch (verdict.ending) {
    case Ending::given_up: return why_given_up(*job.given_up);
    case Ending::starter_stopped:
      return job.findings.ended_for.starts_with("NODE FAIL") ? "" : "somebody has stopped it";
    case Ending::launcher_missing: return "a host has no catena-run";
    case Ending::starter_killed:
    case Ending::starter_failed: return none_started(job) ? "no rank could be started" : "";
    case Ending::rank_failed:
      if (const auto& end = outcome_of(job, verdict.rank).end; end && end->not_started)
        return "the program could not be started";
      return verdict.exit_code == kWrongUsage ? "exit code 2 means wrong usage" : "";
    default: return "";
  }
}

bool any_call(const JobOutcome& job) {
  return std::any_of(job.ranks.begin(), job.ranks.end(), [](const RankOutcome& rank) {
    return rank.end && !rank.end->last_call.empty();
  });
}

// Of several that fell silent at once the way to them may be at fault.
std::string lost_host_of(const JobOutcome& job, const Verdict& verdict) {
  const bool lost = verdict.ending == Ending::host_silent || verdict.ending == Ending::host_lost ||
                    verdict.ending == Ending::host_unaccounted;
  return lost && job.silences.size() <= 1 ? verdict.host : "";
}

// Whatever the rank: of several that fail at once, chance says which is first.
bool alike(const Verdict& a, const Verdict& b) {
  return a.ending == b.ending && a.cause == b.cause && a.exit_code == b.exit_code;
}

// Leaves out the hosts that could not be reached, if that is wanted and enough ranks remain.
NextAttempt leave_out(const JobSpec& spec, const std::vector<std::string>& unreached) {
  NextAttempt next;
  next.hosts = spec.hosts;
  std::erase_if(next.hosts, [&](const Host& host) {
    return std::find(unreached.begin(), unreached.end(), host.name) != unreached.end();
  });
  next.ranks = std::min(spec.ranks, total_slots(next.hosts));
  next.again = next.ranks >= spec.min_ranks;
  if (next.again)
    next.left_out = unreached;
  else
    next.why_not = "the hosts that answer have room for " + std::to_string(next.ranks) +
                   " ranks, fewer than --min-ranks " + std::to_string(spec.min_ranks);
  return next;
}

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Goes on with what the allocation has. Each node has its share of the ranks of the first attempt.
NextAttempt go_on_with(const AllocatedNodes& nodes, const JobSpec& spec) {
  NextAttempt next;
  next.ranks = static_cast<int>(static_cast<std::size_t>(nodes.ranks) * nodes.left.size() /
                                nodes.all.size());
  next.again = next.ranks >= spec.min_ranks;
  if (!next.again) {
    next.why_not = "the nodes that are left have room for " + std::to_string(next.ranks) +
                   " ranks, fewer than --min-ranks " + std::to_string(spec.min_ranks);
    return next;
  }
  if (nodes.left.size() < nodes.all.size()) next.nodes = nodes.left;
  for (const std::string& name : spec.nodes.empty() ? nodes.all : spec.nodes)
    if (!is_one_of(nodes.left, name)) next.left_out.push_back(name);
  return next;
}

std::string without_domain(const std::string& name) { return name.substr(0, name.find('.')); }

// Asks which nodes are left. Slurm notices late that a node is gone, so the host that the attempt
// has lost does not count either, unless Slurm has found another one.
void update_nodes(AllocatedNodes& nodes, std::vector<std::string>& lost, const PastAttempt& last,
                  const Starter& starter) {
  std::vector<std::string> usable = starter.usable_nodes();
  if (usable.empty()) return;  // the controller does not answer
  const auto is_lost = [&](const std::string& node) {
    return is_one_of(lost, without_domain(node));
  };
  std::erase_if(usable, is_lost);
  if (usable.size() >= nodes.left.size() && !last.lost.empty()) {
    lost.push_back(without_domain(last.lost));
    std::erase_if(usable, is_lost);
  }
  nodes.left = std::move(usable);
}

// A signal to end that came after the last one that the attempt has read; 0: none.
int pending_stop(SignalQueue& signals) {
  int stop = 0;
  for (int signal = signals.next(); signal != 0; signal = signals.next())
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
      stop = signal;
  return stop;
}

std::string describe_next(const NextAttempt& next, const JobSpec& spec, int restarts) {
  if (!next.again)
    return next.why_not.empty() ? "" : "catena-run: not started again: " + next.why_not + "\n";
  std::string text = "catena-run: starting again";
  if (next.left_out.empty())
    return text + ", restart " + std::to_string(restarts + 1) + " of at most " +
           std::to_string(spec.max_restarts) + "\n";
  return text + " on " + std::to_string(next.ranks) + (next.ranks == 1 ? " rank" : " ranks") +
         ", without " + join(next.left_out, ", ") + "\n";
}

// Whether rank 0 may have read what no later attempt gets. A terminal is not handed on to it.
bool input_is_read_once() {
  struct stat input {
  }, null{};
  if (isatty(STDIN_FILENO) || fstat(STDIN_FILENO, &input) != 0) return false;
  return !S_ISCHR(input.st_mode) || stat("/dev/null", &null) != 0 || input.st_rdev != null.st_rdev;
}

// Names that belong to one attempt, so that what another has left cannot be mistaken for its own.
void renew(JobSpec& spec, const std::string& log_dir) {
  spec.id = new_job_id();
  set_new_board_key();
  spec.restart = spec.restart.value_or(0) + 1;
  if (!log_dir.empty()) spec.log_dir = log_dir + "/restart-" + std::to_string(*spec.restart);
}

// What the ranks of the last attempt have left, joined, however it ended.
void finish_trace(const JobSpec& spec) {
  if (spec.trace.empty()) return;
  std::string text;
  try {
    text = describe_trace(spec.trace, join_trace(spec.trace, spec.ranks));
  } catch (const std::exception& error) {
    text = std::string("catena-run: ") + error.what() + "\n";
  }
  std::fputs(printable(text).c_str(), stderr);
}

void check_min_ranks(const JobSpec& spec, const AllocatedNodes& nodes) {
  if (spec.min_ranks == 0) return;
  const std::string option = "--min-ranks " + std::to_string(spec.min_ranks);
  if (std::max(spec.hosts.size(), nodes.all.size()) < 2)
    throw UserError(option +
                    ": there are no hosts to leave out; it needs several in -H or "
                    "--hostfile, or an allocation of Slurm with several nodes and --starter srun");
  if (spec.min_ranks > spec.ranks)
    throw UserError(option + ": the job has " + std::to_string(spec.ranks) +
                    " ranks; give a number that is not higher");
}

}  // namespace

PastAttempt look_back(const JobSpec& spec, const Attempt& attempt) {
  const JobOutcome& job = attempt.outcome;
  PastAttempt past;
  past.ranks = spec.ranks;
  past.seconds = attempt.seconds;
  past.verdict = judge(job);
  past.what = first_line(attempt.report.text);
  past.asked = attempt.asked;
  if (past.verdict.ending == Ending::well) return past;
  past.hopeless = why_hopeless(job, past.verdict);
  past.early = attempt.seconds < kEarly && !any_call(job);
  past.unreached = past.verdict.hosts;
  past.lost = lost_host_of(job, past.verdict);
  if (job.given_up) past.unreached = job.given_up->silent;
  return past;
}

NextAttempt decide_next(const JobSpec& spec, const std::vector<PastAttempt>& past, int restarts,
                        const AllocatedNodes* nodes) {
  const PastAttempt& last = past.back();
  NextAttempt next;
  if (spec.max_restarts == 0 || last.verdict.ending == Ending::well ||
      last.verdict.ending == Ending::stopped)
    return next;
  if (last.asked != 0) {
    next.why_not = "catena-run was asked to end by " + signal_name(last.asked);
    return next;
  }
  const std::size_t had = nodes && spec.nodes.empty() ? nodes->all.size() : spec.nodes.size();
  if (nodes && nodes->left.size() < had) return go_on_with(*nodes, spec);
  next.why_not = last.hopeless;
  if (!next.why_not.empty()) return next;
  if (spec.min_ranks > 0 && !last.unreached.empty()) return leave_out(spec, last.unreached);
  if (restarts >= spec.max_restarts) {
    next.why_not = "--max-restarts " + std::to_string(spec.max_restarts) + " is reached";
    return next;
  }
  const bool again = past.size() > 1 && last.early && past[past.size() - 2].early &&
                     alike(last.verdict, past[past.size() - 2].verdict);
  if (again) {
    next.why_not =
        "it has failed twice in the same way, within seconds and before its first collective";
    return next;
  }
  if (nodes) return go_on_with(*nodes, spec);
  next.again = true;
  next.hosts = spec.hosts;
  next.ranks = spec.ranks;
  return next;
}

std::string describe_attempts(const std::vector<PastAttempt>& past) {
  if (past.size() < 2) return "";
  std::string text = "catena-run: " + std::to_string(past.size()) + " attempts\n";
  for (std::size_t i = 0; i < past.size(); ++i)
    text += "  " + std::to_string(i + 1) + ": " + seconds_of(past[i].seconds) + ", " +
            std::to_string(past[i].ranks) + (past[i].ranks == 1 ? " rank, " : " ranks, ") +
            (past[i].what.empty() ? "ended well" : past[i].what) + "\n";
  return text;
}

int run_job(JobSpec spec, Starter& starter, SignalQueue& signals) {
  AllocatedNodes nodes;
  if (spec.min_ranks > 0 && spec.by_srun) nodes.all = nodes.left = starter.usable_nodes();
  nodes.ranks = spec.ranks;
  check_min_ranks(spec, nodes);
  const std::string log_dir = spec.log_dir;
  std::vector<std::string> lost;  // nodes
  std::vector<PastAttempt> past;
  int restarts = 0;
  for (;;) {
    starter.prepare(spec);
    Attempt attempt = run_attempt(spec, starter, signals);
    if (const int signal = pending_stop(signals); attempt.asked == 0) attempt.asked = signal;
    past.push_back(look_back(spec, attempt));
    if (!nodes.all.empty()) update_nodes(nodes, lost, past.back(), starter);
    NextAttempt next = decide_next(spec, past, restarts, nodes.all.empty() ? nullptr : &nodes);
    std::string text = describe_next(next, spec, restarts);
    if (!next.again) text += describe_attempts(past);
    if (next.again && input_is_read_once())
      text += "catena-run: standard input is read once: the new attempt gets what is left of it\n";
    std::fputs(printable(text).c_str(), stderr);
    if (!next.again) {
      finish_trace(spec);
      return attempt.report.exit_code;
    }
    if (!spec.trace.empty()) remove_trace_parts(spec.trace, spec.ranks);
    if (next.left_out.empty()) ++restarts;
    spec.hosts = std::move(next.hosts);
    spec.nodes = std::move(next.nodes);
    spec.ranks = next.ranks;
    renew(spec, log_dir);
  }
}

}  // namespace catena::launch
