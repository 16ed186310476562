// Command line of train_translation.
#pragma once

#include <cstdint>
#include <string>

#include "common/training_run.h"
#include "vocabulary.h"

namespace translation {

struct Options {
  // What to train on: two files, or made lines; or neither, to translate only.
  std::string source, target;
  int64_t reverse = 0;                     // made lines
  std::string valid_source, valid_target;  // else every 20th of the others
  std::string pieces;                      // words, letters; empty: words of files
  int64_t vocabulary = 8000, longest = 60;

  int64_t layers = 3, width = 256;
  double dropout = 0.1, smoothing = 0.1;
  std::string dtype = "float32";
  bool autocast = false;  // products in bfloat16
  std::string start;      // a saved model to begin with

  double lr = 1e-3, decay = 0.01, clip = 1;
  int64_t warmup = 400;
  bool in_order = false;  // pairs in the order of the files

  std::string translate;  // a file, or - for standard input
  int64_t beams = 4;

  examples::RunOptions run{.epochs = 20, .batch = 32};

  bool trains() const { return reverse > 0 || !source.empty(); }
  Pieces kind() const {
    return pieces == "letters" || (pieces.empty() && reverse > 0) ? Pieces::kLetters
                                                                  : Pieces::kWords;
  }
};

// Reads the command line; prints --help or a usage error itself and then exits.
Options parse_options(int argc, char** argv);

}  // namespace translation
