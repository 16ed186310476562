// What the command line of the program says.
#pragma once

#include <cstdint>
#include <string>

#include "common/training_run.h"

namespace gan {

struct Options {
  std::string data;  // folder of the idx files; empty: the packaged Fashion-MNIST
  double rate = 2e-4;
  int64_t warmup = 1;  // epochs
  bool is_short = false;
  examples::RunOptions run{.epochs = 10, .batch = 128};
};

// The networks of a rank. With kOne there is no checkpoint, so no --resume and --overwrite, and no
// --warmup.
enum class Networks { kBoth, kOne };

// Ends the program after --help, and with status 2 for options that are not right.
Options parse_options(int argc, char** argv, const std::string& description, Networks networks);

}  // namespace gan
