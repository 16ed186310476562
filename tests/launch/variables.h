// The variables that Slurm sets, for tests: as values, and in the environment.
#pragma once

#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "environment_scope.h"
#include "plan/slurm.h"

namespace catena::launch {

using VariableMap = std::map<std::string, std::string>;

inline Variables variables_of(VariableMap map) {
  return [map = std::move(map)](const char* name) {
    const auto at = map.find(name);
    return at == map.end() ? std::string() : at->second;
  };
}

// A batch script on the first of two nodes with two tasks each.
inline VariableMap batch_script() {
  return {{"SLURM_JOB_ID", "4711"},
          {"SLURM_JOB_NUM_NODES", "2"},
          {"SLURM_NTASKS", "4"},
          {"SLURM_NTASKS_PER_NODE", "2"},
          {"SLURM_JOB_CPUS_PER_NODE", "2(x2)"},
          {"SLURMD_NODENAME", "n1"},
          {"SLURM_PROCID", "0"}};
}

// Sets variables while it lives; those of Slurm that it does not name are not set.
class SlurmEnvironment {
 public:
  explicit SlurmEnvironment(const VariableMap& variables) {
    std::vector<std::string> names;
    for (char** entry = environ; *entry; ++entry) {
      const std::string text = *entry;
      if (text.starts_with("SLURM")) names.push_back(text.substr(0, text.find('=')));
    }
    for (const std::string& name : names) scope_.set(name, std::nullopt);
    for (const auto& [name, value] : variables) scope_.set(name, value);
  }

 private:
  EnvironmentScope scope_;
};

}  // namespace catena::launch
