// Command line of train_word2vec.
#pragma once

#include <cstdint>
#include <string>

#include "common/training_run.h"

namespace word2vec {

struct Options {
  std::string data;  // see examples::load_corpus()
  int64_t vocabulary = 10000;
  int64_t units = 100;                     // numbers of a word's vector
  int64_t window = 5;                      // the largest distance of two words
  int64_t negative = 20;                   // drawn words, with --out-type ns
  std::string model = "skipgram";          // or "cbow"
  std::string out_type = "hsm";            // or "ns", "original"
  examples::RunOptions run{.epochs = 10};  // run.batch: words in the middle of a window
};

// Reads the command line; prints --help or a usage error itself and then exits.
Options parse_options(int argc, char** argv);

}  // namespace word2vec
