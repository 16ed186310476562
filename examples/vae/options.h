// Command line of train_vae.
#pragma once

#include <cstdint>
#include <string>

#include "common/training_run.h"

namespace vae {

struct Options {
  std::string data;     // folder of the idx files; empty: the packaged Fashion-MNIST
  int64_t hidden = 20;  // numbers that an image becomes
  int64_t units = 500;  // of the layers between
  int64_t draws = 1;    // of hidden numbers, for an image
  double weight = 1;    // of the divergence
  examples::RunOptions run{.epochs = 100};
};

// Reads the command line; prints --help or a usage error itself and then exits.
Options parse_options(int argc, char** argv);

}  // namespace vae
