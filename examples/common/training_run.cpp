#include "common/training_run.h"

#include <cstdio>

#include "catena/comm/factory.h"
#include "catena/training/captured_updater.h"
#include "catena/training/stop_on_signal.h"
#include "common/command_line.h"

namespace examples {

namespace tr = catena::training;

void add_options(CLI::App& app, RunOptions& o, Graphs graphs) {
  app.add_option("--device", o.device, "cpu, cpu:N or cuda:N [GPU 0 if there is one, else cpu:0]");
  app.add_option("--seed", o.seed, "of all random numbers")
      ->check(whole_number())
      ->capture_default_str();
  app.add_option("--out", o.out, "folder for log, checkpoint and results")->capture_default_str();
  app.add_flag("--resume", o.resume, "go on from the checkpoint in the output folder");
  app.add_flag("--overwrite", o.overwrite, "replace the files of an earlier run in that folder")
      ->excludes("--resume");
  if (graphs == Graphs::kOffered)
    app.add_flag("--graph", o.graph, "replay the training step as one CUDA graph (GPUs only)");
}

catena::CommunicatorPtr make_communicator(const RunOptions& options) {
  if (options.device.empty()) return catena::create_communicator();
  const catena::Device device(options.device);
  catena::require_device(device);
  return catena::create_communicator("auto", {.device = device});
}

std::unique_ptr<tr::Updater> make_updater(const RunOptions& options,
                                          catena::datasets::ResidentIterator& batches,
                                          catena::MultiNodeOptimizer& optimizer, tr::Step step) {
  if (!options.graph) return std::make_unique<tr::StandardUpdater>(batches, std::move(step));
  return std::make_unique<tr::CapturedUpdater>(batches, optimizer, std::move(step));
}

bool run(const RunOptions& options, tr::Trainer& trainer, catena::Communicator& comm) {
  const auto& stop = trainer.extend(std::make_unique<tr::StopOnSignal>(&comm));
  const bool has_checkpoint = trainer.has_checkpoint();
  const std::string path = trainer.checkpoint_path();
  if (options.resume) {
    CATENA_CHECK(IoError, has_checkpoint, "--resume: there is no '", path,
                 "' to go on from; start without --resume, or name the folder of the earlier run "
                 "with --out");
    trainer.resume();
  } else {
    CATENA_CHECK(ValueError, options.overwrite || !has_checkpoint, "'", path,
                 "' is of an earlier run; go on from it with --resume, replace it with "
                 "--overwrite, or choose another folder with --out");
  }
  trainer.run();
  if (stop.signal() == 0) return true;
  if (tr::prints())
    std::printf("stopped by signal %d after update %lld; go on with --resume\n", stop.signal(),
                static_cast<long long>(trainer.iteration()));
  return false;
}

}  // namespace examples
