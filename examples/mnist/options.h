// Command line of the MNIST programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../common/training_run.h"
#include "catena/optimizers/optimizer.h"
#include "catena/optimizers/schedules.h"

namespace mnist {

// See Network in models.h.
struct NetworkOptions {
  std::string name = "mlp";  // or "lenet", "resnet"
  int64_t units = 1000;      // of each hidden layer of "mlp"
  double dropout = 0;        // behind the hidden linear layers of "mlp" and "lenet"
  catena::Dtype dtype = catena::Dtype::kFloat32;
  bool autocast = false;  // bfloat16 products and convolutions of float32 weights
};

struct Options {
  std::string data;  // folder of the idx files; empty: the packaged Fashion-MNIST
  NetworkOptions network;
  std::string optimizer = "adam";
  double lr = 0;         // 0: the rule's default
  bool cosine = false;   // the learning rate falls along a cosine
  std::string drawing;   // file for the graph behind the first loss; empty: none
  bool summary = false;  // print the table of layers
  int64_t slices = 0;    // of a batch over ranks, for equal bits on any number of them; 0: none
  examples::RunOptions run;
};

// What a program trains on.
enum class Devices {
  kOne,      // with --summary and --graph-dot
  kRanks,    // one in each process
  kSeveral,  // of one process
};

// Reads the command line; prints --help or a usage error itself and then exits. ValueError for
// --graph with several devices.
Options parse_options(int argc, char** argv, const std::string& description, Devices devices);

// The learning rate of each epoch with --schedule cosine: that of the rule falls over all epochs to
// a hundredth.
catena::optimizers::Schedule cosine_rate(const Options& options);

// SGD (0.1), momentum (0.01, 0.9), Adam or AdamW (0.001), by options.optimizer.
std::unique_ptr<catena::Optimizer> make_optimizer(const Options& options);

}  // namespace mnist
