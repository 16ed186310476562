// Command line of train_imagenet.
#pragma once

#include <string>

#include "common/training_run.h"
#include "networks.h"

namespace imagenet {

struct Options {
  std::string train, val;  // lists of pictures
  int64_t synthetic = 0;   // pictures without files instead of the lists; 0: the lists
  std::string mean = "mean.npy", root = ".";
  Arch arch = Arch::kNin;
  int64_t val_batch = 250;
  double lr = 0;         // 0: that of the network's rule
  int64_t threads = 20;  // that decode pictures
  bool summary = false;  // print the layers first
  std::string drawing;   // file for the graph of the first loss; empty: none
  examples::RunOptions run{.epochs = 10, .batch = 32};
};

// Reads the command line; prints --help or a usage error itself and then exits.
Options parse_options(int argc, char** argv);

}  // namespace imagenet
