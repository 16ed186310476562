// Starts jobs with Slurm's srun, inside an allocation: Slurm then counts, confines and ends the
// ranks itself, and Open MPI's daemons are not needed.
//
// srun hands on SIGUSR1 and SIGUSR2 alone; SIGTERM makes it kill all tasks. To ask rank processes
// of other nodes to end their programs, scancel sends them SIGURG, which programs ignore: whatever
// Slurm signals reaches all processes of a task.
#pragma once

#include <memory>
#include <string>

#include "starter/srun_command.h"
#include "starter/starter.h"

namespace catena::launch {

class SrunStarter : public Starter {
 public:
  SrunStarter() : allocation_(slurm_allocation()) {}

  StarterTerms terms() const override;
  StarterNeeds needs() const override;
  std::string check() override;
  void refuse_nesting() const override;
  std::vector<std::string> usable_nodes() const override;
  StartCommand command(const JobSpec& spec) const override;
  std::string describe_network(const JobSpec& spec) const override;
  std::unique_ptr<StarterOutput> read_output(const JobSpec& spec,
                                             StarterOutput::OnLine on_line) const override;
  void signal_ranks(pid_t starter, const std::string& step, int signal) const override;
  double end(pid_t starter) const override;

 private:
  SlurmAllocation allocation_;
  Srun srun_;
};

// Whether a job that names no starter is started by srun: in an allocation, with the hosts and
// arguments left to Slurm, if this Slurm connects tasks by PMIx, or if there is no mpirun.
bool prefers_srun(const JobSpec& spec);

}  // namespace catena::launch
