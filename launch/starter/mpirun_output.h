// Reads what mpirun itself prints.
//
// Its words are the only source for some of what the report needs: which rank process a signal
// ended when it could not report itself, which host ssh did not reach, whose daemon was lost. Open
// MPI's exit codes do not distinguish these. So phrases of Open MPI 4 and 5 and of ssh are searched
// for, here and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starter/starter.h"

namespace catena::launch {

class MpirunOutput : public StarterOutput {
 public:
  // `hosts`: names that ssh may speak of.
  explicit MpirunOutput(OnLine on_line, std::vector<std::string> hosts = {})
      : on_line_(std::move(on_line)), hosts_(std::move(hosts)) {}
  void feed(std::string_view bytes) override;
  void finish() override;
  void see_error_of_rank(int rank, std::string_view bytes) override;
  const StarterFindings& findings() const override { return findings_; }
  const std::string& withheld() const override { return withheld_; }

 private:
  void take_line(const std::string& line);
  void close_block();
  void learn(const std::string& text);
  void pass_on(const std::string& line);
  void learn_of_hosts(const std::string& line);
  void learn_of_mpi(const std::string& line);

  OnLine on_line_;
  std::vector<std::string> hosts_;
  std::string rest_;
  bool in_block_ = false;  // between two lines of dashes
  std::string block_;
  std::string withheld_;
  StarterFindings findings_;
};

}  // namespace catena::launch
