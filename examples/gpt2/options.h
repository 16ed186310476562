// Command line of train_gpt2.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/training_run.h"

namespace gpt2 {

struct Options {
  // One of them: files of text, a file of token numbers, random tokens; or none, to sample only.
  std::vector<std::string> text = {};
  std::string tokens;
  bool bench = false;
  std::string validation;      // a file like the others; else their last tenth
  int64_t vocabulary = 0;      // of token numbers; 0: not given
  int64_t valid_batches = 20;  // most batches of a validation pass

  std::string size = "tiny";
  int64_t context = 0;  // 0: the start's, or 256
  double dropout = 0;
  std::string dtype = "float32";
  bool autocast = false;            // products in bfloat16
  std::string start;                // a saved model to begin with
  std::string keep = "everything";  // of a layer, for backward
  int64_t memory_budget = 0;        // MiB that layers may keep; 0: not given
  bool offload = false;             // what layers keep, to the host

  int64_t iterations = 2000, decay_iterations = 0;  // 0: as many as iterations
  double lr = 6e-4, decay = 0.1, clip = 1;
  int64_t warmup = 100;
  int64_t snapshot = 1000;  // updates between two checkpoints
  bool in_order = false;    // windows in the order of the text

  int64_t sample = 0;  // tokens to write
  std::string prompt;
  double temperature = 0.8;
  int64_t top_k = 0;      // 0: all
  bool no_cache = false;  // of keys and values

  // run.batch: windows of one update, over all ranks. Runs end after updates, not epochs.
  examples::RunOptions run{
      .epochs = std::numeric_limits<int64_t>::max(), .batch = 16, .report = 100};

  bool trains() const { return bench || !tokens.empty() || !text.empty(); }
};

// Reads the command line; prints --help or a usage error itself and then exits.
Options parse_options(int argc, char** argv);

}  // namespace gpt2
