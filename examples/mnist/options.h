// Command line of the MNIST programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catena/core/device.h"
#include "catena/optimizers/optimizer.h"
#include "catena/optimizers/schedules.h"

namespace mnist {

struct Options {
  std::string data;  // folder of the idx files; empty: the packaged Fashion-MNIST
  int64_t epochs = 20;
  int64_t batch = 100;  // global: divided over the ranks or replicas
  std::vector<catena::Device> devices;
  std::string model = "mlp";  // see Network in models.h
  catena::Dtype dtype = catena::Dtype::kFloat32;
  bool autocast = false;  // bfloat16 products and convolutions of float32 weights
  double dropout = 0;     // behind the hidden layers of "mlp"
  std::string optimizer = "adam";
  double lr = 0;        // 0: the rule's default
  bool cosine = false;  // the learning rate falls along a cosine
  uint64_t seed = 1;
  std::string out = "result";
  bool resume = false;
  bool overwrite = false;  // replace the files of an earlier run
  bool graph = false;      // replay the step as one CUDA graph
  std::string drawing;     // file for the graph behind the first loss; empty: none
  bool summary = false;    // print the table of layers
};

// How many devices a program takes.
enum class Devices { kNone, kOne, kSeveral };

// Reads the command line; prints --help or a usage error itself and then exits.
Options parse_options(int argc, char** argv, const std::string& description, Devices devices);

// The learning rate of each epoch with --schedule cosine: that of the rule falls over all epochs to
// a hundredth.
catena::optimizers::Schedule cosine_rate(const Options& options);

// SGD (0.1), momentum (0.01, 0.9), Adam or AdamW (0.001), by options.optimizer.
std::unique_ptr<catena::Optimizer> make_optimizer(const Options& options);

}  // namespace mnist
