// Command line of train_ptb.
#pragma once

#include <cstdint>
#include <string>

#include "common/training_run.h"

namespace ptb {

struct Options {
  std::string data;  // see examples::load_corpus()
  int64_t vocabulary = 10000;
  int64_t units = 650;
  int64_t window = 35;  // words through which gradients flow back
  double lr = 1;
  double decay = 1.2;  // divides the rate after each epoch from the sixth on
  double clip = 5;     // the largest norm of the gradients
  double dropout = 0.5;
  int64_t sample = 0;  // words to write when training is done
  // run.batch: texts that are read beside each other, over all ranks.
  examples::RunOptions run{.epochs = 39, .batch = 20};
};

// Reads the command line; prints --help or a usage error itself and then exits.
Options parse_options(int argc, char** argv);

}  // namespace ptb
