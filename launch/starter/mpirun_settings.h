// Parameters of Open MPI ("MCA parameters"): those that the user or the site has set, wherever Open
// MPI reads them from, and those that a job adds.
#pragma once

#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/job_spec.h"

namespace catena::launch {

class McaParameters {
 public:
  // Of `mpi_args`, of the environment ("NAME=VALUE" entries) and of the files, the strongest first.
  McaParameters(const std::vector<std::string>& mpi_args,
                const std::vector<std::string>& environment, const std::string& mpirun);

  std::optional<std::string> value(const std::string& name) const;
  bool has(const std::string& name) const { return value(name).has_value(); }
  // Set by the user (arguments, environment), not by the files of the site or of the installation.
  bool set_by_user(const std::string& name) const { return by_user_.contains(name); }

  // Lines "name = value", '#' starts a comment.
  void read_file(std::istream& lines);

 private:
  std::map<std::string, std::string> by_user_, by_file_;
};

struct McaSetting {
  bool runtime = false;  // of mpirun and its daemons, which are PRRTE in Open MPI 5
  std::string name;
  std::string value;
  bool operator==(const McaSetting&) const = default;
};

// The options that give an mpirun of this major version the networks. Without other hosts no rank
// listens on a network. Parameters that are in `set` are left alone.
std::vector<McaSetting> network_settings(const Network& network, const McaParameters& set,
                                         int major);

// By default Open MPI cuts the names of hosts at the first dot.
std::vector<McaSetting> host_name_settings(const std::vector<Host>& hosts, const McaParameters& set,
                                           int major);

// What the user has set about the ways by which ranks reach each other (the frameworks pml, mtl and
// btl), as it was set: "OMPI_MCA_btl=self", "--mca pml ucx".
std::vector<std::string> chosen_transports(const std::vector<std::string>& mpi_args,
                                           const std::vector<std::string>& environment);

// Why Open MPI 4 cannot start ranks on a host of this name; "" when it can.
std::string problem_of_host_name(const std::string& name);

// Whether mpirun, which reads all words of its command line, would take this word for one of its
// own settings although it comes after the program's name.
bool looks_like_mca_option(const std::string& word);

}  // namespace catena::launch
