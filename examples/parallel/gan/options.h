// What the command line of the program says.
#pragma once

#include <cstdint>
#include <string>

namespace gan {

struct Options {
  std::string data, out = "result";
  int64_t epochs = 10, batch = 128;
  uint64_t seed = 1;
  double rate = 2e-4;
  int64_t warmup = 1;  // epochs
  bool is_short = false;
};

// Ends the program after --help, and with status 2 for options that are not right.
Options parse_options(int argc, char** argv);

}  // namespace gan
