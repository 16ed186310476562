// A second process that plans convolutions with a cache folder, and what it leaves there.
#pragma once

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

#include "core/standard_folders.h"

namespace catena::testing {

// What CUDNN_PLANS_PROGRAM prints with these settings (NAME=VALUE, separated by blanks) before its
// argument; what this process was given for providers and tuning does not count. Ends with "the
// process failed" if it did.
inline std::string lines_of_plans_program(const std::string& folder,
                                          const std::string& settings = "",
                                          const std::string& arguments = "") {
  const std::string command =
      "env -u CATENA_PROVIDERS -u CATENA_CUDNN -u CATENA_CONVOLUTION_TUNE " + settings +
      " CATENA_CACHE_DIR=" + folder + " " + CUDNN_PLANS_PROGRAM + " " + arguments;
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[1024];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  if (pclose(pipe) != 0) text += "the process failed";
  return text;
}

// The names of the files of plans in a cache folder.
inline std::set<std::string> plan_files(const std::string& folder) {
  std::set<std::string> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/plans", ignored))
    if (entry.path().extension() == kPlanCache.suffix) files.insert(entry.path().filename());
  return files;
}

}  // namespace catena::testing
