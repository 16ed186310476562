// Where an example trains, and the files of its run: options that all have, and what follows from
// them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "catena/comm/communicator.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/training/trainer.h"

namespace examples {

struct RunOptions {
  std::string device;  // "": that of the rank
  std::string out = "result";
  uint64_t seed = 1;
  bool resume = false, overwrite = false;
  bool graph = false;  // replay the step as one CUDA graph
};
enum class Graphs { kOffered, kNot };

// --device, --seed, --out, --resume, --overwrite and, where the step can be captured, --graph.
void add_options(CLI::App& app, RunOptions& options, Graphs graphs);

// The communicator of the job, on the device that was asked for; one rank without a launcher.
catena::CommunicatorPtr make_communicator(const RunOptions& options);

// Runs the step on each batch, or replays it.
std::unique_ptr<catena::training::Updater> make_updater(const RunOptions& options,
                                                        catena::datasets::ResidentIterator& batches,
                                                        catena::MultiNodeOptimizer& optimizer,
                                                        catena::training::Step step);

// From the checkpoint with --resume, else from the beginning, until the run is done. False if a
// signal ended it before. ValueError for files of an earlier run, which names these options.
bool run(const RunOptions& options, catena::training::Trainer& trainer, catena::Communicator& comm);

}  // namespace examples
