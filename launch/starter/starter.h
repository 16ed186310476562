// Starter of the rank processes of a job on their hosts.
//
// That is mpirun (starter/mpirun_starter.h) or Slurm's srun (starter/srun_starter.h). Another one
// is a class beside them and a line in choose_starter(); supervisor, plan and report know no more
// of a starter than what is declared here. How a rank process finds its rank is in
// rank/rank_identity.cpp.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "spec/job_spec.h"

namespace catena::launch {

// How the report speaks of a starter.
struct StarterTerms {
  std::string name;        // "mpirun"
  std::string daemon;      // what works for it on each host: "daemon of Open MPI"
  std::string connection;  // by which it reaches other hosts: "ssh"
  std::string host_duty;   // what hosts must do for that: "answer to ssh without a password"
  std::string try_host;    // a command that tries it, before and behind the host's name
  std::string try_host_end;
  std::string no_connection;  // "there is no ssh here (apt-get install openssh-client)"
  std::string packages;       // of apt, that install it
};

// What a starter has said about the end of a job.
struct StarterFindings {
  std::optional<int> abort_rank;  // it called MPI_Abort
  int abort_code = 1;
  std::optional<int> killed_rank;  // its rank process was ended by a signal
  int killed_signal = 0;
  std::string killed_host;
  // What the connection said about a host that could not be reached; the host is "" when it did not
  // name one.
  std::string unreached_host;
  std::string unreached_reason;
  bool unreached_for_now = false;  // it may answer later: it is just starting, for instance
  std::string lost_host;           // whose daemon ended, or whose connection did
  std::string broken_host;         // where catena-run itself could not be started
  bool daemons_failed = false;     // some were not started, or were lost; it does not say which
  bool no_connection = false;      // there is no ssh to reach other hosts with
  bool mpi_init_failed = false;    // of the program, in any rank
  std::string ended_for;           // why the batch system ended the ranks: "TIME LIMIT"
};

// Takes in what a starter prints itself: notices about the end of a job are kept for the report,
// everything else is passed on.
class StarterOutput {
 public:
  using OnLine = std::function<void(std::string_view line)>;

  virtual ~StarterOutput() = default;
  virtual void feed(std::string_view bytes) = 0;
  virtual void finish() = 0;
  // What the program of a rank has written to its standard error.
  virtual void see_error_of_rank(int /*rank*/, std::string_view /*bytes*/) {}
  virtual const StarterFindings& findings() const = 0;
  // The notices that were not passed on.
  virtual const std::string& withheld() const = 0;
};

struct StartCommand {
  std::string path;                // of the executable
  std::vector<std::string> words;  // its argv
  // Set for it, after those of the job; without a value: it must not have them.
  std::vector<EnvSetting> environment = {};
};

class Starter {
 public:
  virtual ~Starter() = default;

  virtual StarterTerms terms() const = 0;
  virtual StarterNeeds needs() const = 0;
  // Makes sure that it is there, and says what was found: "Open MPI 4.1.4, /usr/bin/mpirun". To be
  // called before what follows. Throws UserError that says how to install it.
  virtual std::string check() = 0;
  // Throws UserError when this process is itself a rank, in which no other job can start.
  virtual void refuse_nesting() const {}
  // The hosts of the batch system's allocation that ranks can be started on now. Empty: there is no
  // allocation, or this starter cannot leave out some of its hosts, or the answer is not known.
  virtual std::vector<std::string> usable_nodes() const { return {}; }
  // Creates the resources on this machine that the job needs to start; they are freed with this
  // object. Not for a dry run.
  virtual void prepare(const JobSpec&) {}
  virtual StartCommand command(const JobSpec& spec) const = 0;
  // For the report of a job whose ranks did not find each other: the networks that they were to
  // use, and how to name others. "" where they use none.
  virtual std::string describe_network(const JobSpec& spec) const = 0;
  // For the report of a job that failed before its ranks were connected: the user's settings that
  // choose how they are. "" where there are none.
  std::string describe_transports(const JobSpec& spec) const;

  // For one process of the starter; `on_line` gets what it passes on.
  virtual std::unique_ptr<StarterOutput> read_output(const JobSpec& spec,
                                                     StarterOutput::OnLine on_line) const = 0;
  // The exit code that the status of wait() means, -N when signal N ended the starter itself: its
  // exit codes above 128 are about ranks, or errors of its own.
  virtual int exit_code(int wait_status) const;
  // Has a signal delivered to all rank processes, wherever they run. SIGALRM is the launcher's word
  // to stop. `step`: as StartReport, "" when no rank has said it.
  virtual void signal_ranks(pid_t starter, const std::string& step, int signal) const;
  // Ends the starter, a process group, with all that it has started. Does not wait: returns the
  // seconds after which what is left of the group must be killed, 0 when that has been done.
  virtual double end(pid_t starter) const;
};

// The one that a job is to be started with. Throws UserError when the job's options do not go
// together with it.
std::unique_ptr<Starter> choose_starter(const JobSpec& spec);

}  // namespace catena::launch
