// Starts jobs with Open MPI's mpirun, of version 4 or 5.
#pragma once

#include <memory>
#include <string>

#include "starter/mpirun_command.h"
#include "starter/session_folder.h"
#include "starter/starter.h"

namespace catena::launch {

class MpirunStarter : public Starter {
 public:
  explicit MpirunStarter(std::string name) : name_(std::move(name)) {}

  StarterTerms terms() const override;
  StarterNeeds needs() const override;
  std::string check() override;
  void refuse_nesting() const override;
  void prepare(const JobSpec& spec) override;
  StartCommand command(const JobSpec& spec) const override;
  std::string describe_network(const JobSpec& spec) const override;
  std::unique_ptr<StarterOutput> read_output(const JobSpec& spec,
                                             StarterOutput::OnLine on_line) const override;

 private:
  std::string name_;
  Mpirun mpirun_;
  std::unique_ptr<SessionFolder> session_;
};

}  // namespace catena::launch
