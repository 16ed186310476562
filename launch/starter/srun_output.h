// Reads what srun and Slurm's daemons print about a step: which rank process a signal ended when it
// could not report itself, which node was lost, why Slurm ended the step. Phrases of Slurm
// (22.05) are searched for, here and nowhere else; where another version has other ones, the report
// knows less.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "starter/starter.h"

namespace catena::launch {

class SrunOutput : public StarterOutput {
 public:
  explicit SrunOutput(OnLine on_line) : on_line_(std::move(on_line)) {}
  void feed(std::string_view bytes) override;
  void finish() override;
  void see_error_of_rank(int rank, std::string_view bytes) override;
  const StarterFindings& findings() const override { return findings_; }
  const std::string& withheld() const override { return withheld_; }

 private:
  void take_line(const std::string& line);
  void learn_of_tasks(const std::string& line);
  void learn(const std::string& line);

  OnLine on_line_;
  std::string rest_;
  bool ending_ = false;            // Slurm is ending the tasks: what else ends is a consequence
  bool tasks_ended_ = false;       // badly, some
  int killed_groups_ = 0;          // lines about tasks that SIGKILL ended
  bool ended_otherwise_ = false;   // badly, and not by SIGKILL
  bool cancelled_ = false;         // Slurm has ended the step
  bool cancelled_first_ = false;   // before anything was said of tasks
  bool forced_ = false;            // because catena-run ended srun
  bool launcher_missing_ = false;  // some node could not start the rank process
  std::string withheld_;
  std::map<int, std::string> errors_;  // the end of each rank's standard error
  StarterFindings findings_;
};

}  // namespace catena::launch
