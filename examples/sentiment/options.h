// Command line of train_sentiment.
#pragma once

#include <cstdint>
#include <string>

#include "common/training_run.h"

namespace sentiment {

struct Options {
  std::string data;      // folder of trees; "": trees are made
  int64_t trees = 2000;  // to train on, where they are made
  int64_t labels = 5;
  int64_t units = 30;  // numbers of a node's vector
  int64_t report = 5;  // epochs between two rows of the table
  double lr = 0.1;
  examples::RunOptions run{.epochs = 400, .batch = 25};  // run.batch: trees of one update
};

// Reads the command line; prints --help or a usage error itself and then exits.
Options parse_options(int argc, char** argv);

}  // namespace sentiment
