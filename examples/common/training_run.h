// Where and how long an example trains, and the files of its run: options that all have, and what
// follows from them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/training/trainer.h"
#include "command_line.h"

namespace examples {

struct RunOptions {
  int64_t epochs = 20;  // passes over the training data, those of a resumed run included
  int64_t batch = 100;  // samples of one update, over all devices and ranks
  int64_t report = 0;   // updates between two rows of the table; 0: a row an epoch
  std::vector<std::string> devices = {};  // none: the program's choice
  std::string out = "result";
  uint64_t seed = 1;
  bool resume = false, overwrite = false;
  bool behind = false;  // checkpoints are written by all ranks, to a folder, behind training
  bool graph = false;   // replay the step as one CUDA graph
};
enum class Graphs { kOffered, kNot };

// What a program calls its passes and samples; names where those of Chainer's example differ.
struct PassTexts {
  std::string passes = "passes over the training images";
  std::string samples = "images of one update, over all devices and ranks";
  std::string epoch = "-e,--epoch", batchsize = "-b,--batchsize";
};
// -e/--epoch, -b/--batchsize and --report.
void add_pass_options(CommandLine& line, RunOptions& options, const PassTexts& texts = {});
// -d/--device, and -g/--gpu as in Chainer's examples: the number of a GPU, -1 for the CPU. Lists
// where the program takes several devices; `otherwise` says what it takes by itself.
void add_device_options(CommandLine& line, RunOptions& options,
                        DeviceCount count = DeviceCount::kOne,
                        const std::string& otherwise = "GPU 0 if there is one, else cpu:0");
// --seed and -o/--out; then --resume, --overwrite and --async-checkpoints as well.
void add_seed_and_folder(CommandLine& line, RunOptions& options,
                         const std::string& out = "-o,--out");
void add_output_options(CommandLine& line, RunOptions& options,
                        const std::string& out = "-o,--out");
// --graph-dot and --summary: a file for the graph behind the first loss, and whether to print the
// layers first.
void add_drawing_options(CommandLine& line, std::string& drawing, bool& summary);
// Devices, output and, where the step can be captured, --graph.
void add_options(CommandLine& line, RunOptions& options, Graphs graphs);

// Those that were named. DeviceError for one that this machine does not have.
std::vector<catena::Device> devices_of(const RunOptions& options);

// The communicator of the job, on the device that was asked for; one rank without a launcher.
catena::CommunicatorPtr make_communicator(const RunOptions& options);
// The same after the output folder, so that a run fails before anything takes its time. IoError
// where files cannot be written there.
catena::CommunicatorPtr begin(const RunOptions& options);

// Runs the step on each batch, or replays it.
std::unique_ptr<catena::training::Updater> make_updater(const RunOptions& options,
                                                        catena::datasets::ResidentIterator& batches,
                                                        catena::MultiNodeOptimizer& optimizer,
                                                        catena::training::Step step);

// Length, folder and rows of the run.
catena::training::TrainerOptions trainer_options(const RunOptions& options,
                                                 std::vector<std::string> metrics = {"loss",
                                                                                     "accuracy"});

// The same score, which writes the graph behind its first loss to `file`: as Graphviz's text, or
// drawn by its program dot where the name ends in ".svg". An empty name: draws nothing.
catena::training::Score drawing_the_first(catena::training::Score score, const std::string& file);

// The signals at which a run saves and ends: SIGTERM, SIGUSR1 and, unless the process was started
// with it ignored, as shells do in the background, SIGINT (Ctrl-C).
std::vector<int> stop_signals();

// From the checkpoint with --resume, or when catena-run --max-restarts has started the program
// again and an attempt before has left one; else from the beginning, until the run is done;
// `resumed` is called in between. False if a signal ended it before, with a checkpoint. A run of
// one process needs no communicator. IoError where there is nothing to resume; ValueError for files
// of an earlier run, and for a checkpoint made with another batch size or seed, on which the order
// of the samples depends. They name the options.
bool run(const RunOptions& options, catena::training::Trainer& trainer, catena::Communicator* comm,
         const std::function<void()>& resumed = {});
inline bool run(const RunOptions& options, catena::training::Trainer& trainer,
                catena::Communicator& comm) {
  return run(options, trainer, &comm);
}

}  // namespace examples
