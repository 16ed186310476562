// Surroundings of catena-run that a job takes over: its own path, folder, terminal, variables.
#pragma once

#include <string>
#include <vector>

#include "spec/job_spec.h"

namespace catena::launch {

// Throws UserError where the folder that this process was started in is gone.
void require_working_folder();

// The path of this program.
std::string own_path();

// Completes a planned job. Throws UserError.
JobSpec add_surroundings(JobSpec spec);

// The folder for logs by its full name. Made here as well as by the ranks, so that a mistake is
// reported once and before any rank starts. Throws UserError.
std::string make_log_dir(const std::string& name);

// Names of the variables that all ranks get: the fixed families that are set in `environment`
// ("NAME=VALUE" entries), then those of --env.
std::vector<std::string> forwarded_names(const std::vector<std::string>& environment,
                                         const std::vector<EnvSetting>& settings);

// --env NAME hands on the current value, so there must be one. Throws UserError.
void check_env(const std::vector<EnvSetting>& settings);

}  // namespace catena::launch
