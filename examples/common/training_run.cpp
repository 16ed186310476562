#include "common/training_run.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "catena/array/io.h"
#include "catena/autograd/computational_graph.h"
#include "catena/comm/factory.h"
#include "catena/comm/run_main.h"
#include "catena/training/captured_updater.h"
#include "catena/training/output_folder.h"
#include "catena/training/stop_on_signal.h"

namespace examples {

namespace tr = catena::training;

namespace {

// What the order of the samples depends on: a run that goes on with another one would not be the
// run that it says it is.
struct Settings {
  int64_t batch;
  uint64_t seed;
};

void check_settings(const Settings& saved, const RunOptions& options, const std::string& path) {
  CATENA_CHECK(ValueError, saved.batch == options.batch && saved.seed == options.seed,
               "--resume: '", path, "' was made with --batchsize ", saved.batch, " --seed ",
               saved.seed, ", got --batchsize ", options.batch, " --seed ", options.seed,
               "; give the same ones, or start without --resume");
}

void save_settings(const RunOptions& options, tr::Trainer& trainer) {
  trainer.checkpoint().add(
      "settings",
      [&options] {
        return Settings{options.batch, options.seed};
      },
      [&options, path = trainer.checkpoint_path()](const Settings& saved) {
        check_settings(saved, options, path);
      });
}

void resume(const RunOptions& options, tr::Trainer& trainer) {
  CATENA_CHECK(IoError, trainer.has_checkpoint(), "--resume: there is no '",
               trainer.checkpoint_path(),
               "' to go on from; start without --resume, or name the folder of the earlier run "
               "with --out");
  trainer.resume();
  if (trainer.epoch() >= options.epochs && tr::prints())
    std::printf("the checkpoint has %lld epochs already; ask for more with --epoch\n",
                static_cast<long long>(trainer.epoch()));
}

// How often catena-run --max-restarts has started this program again; none: it never does.
std::optional<int> restart_number() {
  const char* const text = std::getenv("CATENA_RESTART");
  return text && *text ? std::optional(std::atoi(text)) : std::nullopt;
}
bool is_restarted() { return restart_number().value_or(0) > 0; }

// Whether the attempts before have left a checkpoint.
bool finds_checkpoint(const tr::Trainer& trainer) {
  const bool found = trainer.has_checkpoint();
  if (tr::prints())
    std::printf("restart %d: %s\n", *restart_number(),
                found ? "going on from the checkpoint" : "no checkpoint yet, from the beginning");
  return found;
}

// The trainer refuses it too, but does not know the names of these options.
void refuse_earlier_run(const RunOptions& options, const tr::Trainer& trainer) {
  const bool has_checkpoint = trainer.has_checkpoint();  // all ranks ask
  CATENA_CHECK(ValueError, options.overwrite || !has_checkpoint, "'", trainer.checkpoint_path(),
               "' is of an earlier run; go on from it with --resume, replace it with "
               "--overwrite, or choose another folder with --out");
}

// Before the first attempt of a job that may be started again. What an earlier run has left must
// not pass for a checkpoint of this one: it is refused with the exit code at which catena-run gives
// up, or goes.
void clear_the_way(const RunOptions& options, tr::Trainer& trainer) {
  try {
    refuse_earlier_run(options, trainer);
  } catch (const catena::ValueError& error) {
    catena::report_failure(error);
    std::fprintf(stderr, "error: %s\n", error.what());
    std::exit(2);
  }
  trainer.remove_checkpoints();
}

void say_that_it_stopped(int signal, const tr::Trainer& trainer) {
  if (!tr::prints()) return;
  const std::string by = signal == SIGINT ? "Ctrl-C" : "signal " + std::to_string(signal);
  std::printf("stopped by %s after update %lld; go on with --resume\n", by.c_str(),
              static_cast<long long>(trainer.iteration()));
}

}  // namespace

void add_pass_options(CommandLine& line, RunOptions& o, const PassTexts& texts) {
  line.add_count(texts.epoch, o.epochs, texts.passes);
  line.add_count(texts.batchsize, o.batch, texts.samples);
  line.add_count("--report", o.report, "updates between two rows of the table [an epoch]");
}

void add_device_options(CommandLine& line, RunOptions& o, DeviceCount count,
                        const std::string& otherwise) {
  line.add_devices(o.devices, count, otherwise);
}

void add_seed_and_folder(CommandLine& line, RunOptions& o, const std::string& out) {
  line.add_whole("--seed", o.seed, "of all random numbers");
  line.add_text(out, o.out, "folder for what is written");
}

void add_output_options(CommandLine& line, RunOptions& o, const std::string& out) {
  add_seed_and_folder(line, o, out);
  const auto resume =
      line.add_flag("--resume", o.resume, "go on from the checkpoint in the output folder");
  line.add_flag("--overwrite", o.overwrite, "replace the files of an earlier run in that folder")
      .excludes(resume);
  line.add_flag("--async-checkpoints", o.behind,
                "all ranks write checkpoints, to a folder that they share and behind training");
}

void add_drawing_options(CommandLine& line, std::string& drawing, bool& summary) {
  line.add_flag("--summary", summary, "print layers, shapes, parameters and costs first");
  line.add_text("--graph-dot", drawing,
                "file for the graph of functions behind the first loss, as Graphviz's text; drawn "
                "by its program dot where the name ends in .svg");
}

void add_options(CommandLine& line, RunOptions& o, Graphs graphs) {
  add_device_options(line, o);
  add_output_options(line, o);
  if (graphs == Graphs::kOffered)
    line.add_flag("--graph", o.graph, "replay the training step as one CUDA graph (GPUs only)");
}

std::vector<catena::Device> devices_of(const RunOptions& options) {
  std::vector<catena::Device> devices;
  for (const std::string& name : options.devices) {
    devices.emplace_back(name);
    catena::require_device(devices.back());
  }
  return devices;
}

catena::CommunicatorPtr make_communicator(const RunOptions& options) {
  const std::vector<catena::Device> named = devices_of(options);
  if (named.empty()) return catena::create_communicator();
  return catena::create_communicator("auto", {.device = named[0]});
}

catena::CommunicatorPtr begin(const RunOptions& options) {
  tr::prepare_output_folder(options.out);
  return make_communicator(options);
}

std::unique_ptr<tr::Updater> make_updater(const RunOptions& options,
                                          catena::datasets::ResidentIterator& batches,
                                          catena::MultiNodeOptimizer& optimizer, tr::Step step) {
  if (!options.graph) return std::make_unique<tr::StandardUpdater>(batches, std::move(step));
  return std::make_unique<tr::CapturedUpdater>(batches, optimizer, std::move(step));
}

tr::TrainerOptions trainer_options(const RunOptions& options, std::vector<std::string> metrics) {
  tr::TrainerOptions result{.epochs = options.epochs,
                            .out = options.out,
                            .metrics = std::move(metrics),
                            .overwrite = options.overwrite || is_restarted()};
  if (options.report > 0) result.report = {.iterations = options.report};
  if (options.behind) result.checkpoints = tr::CheckpointFolderOptions{};
  return result;
}

tr::Score drawing_the_first(tr::Score score, const std::string& file) {
  if (file.empty()) return score;
  return [score = std::move(score), file,
          drawn = false](const catena::datasets::Batch& batch) mutable {
    catena::Variables scores = score(batch);
    if (!drawn) {
      const auto graph = catena::build_computational_graph(scores[0]);
      catena::write_file_atomically(file, graph.dump(file.ends_with(".svg") ? "svg" : "dot"));
    }
    drawn = true;
    return scores;
  };
}

std::vector<int> stop_signals() {
  std::vector<int> signals{SIGTERM, SIGUSR1};
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) signals.push_back(SIGINT);
  return signals;
}

bool run(const RunOptions& options, tr::Trainer& trainer, catena::Communicator* comm,
         const std::function<void()>& resumed) {
  const auto& stop = trainer.extend(std::make_unique<tr::StopOnSignal>(comm, stop_signals()));
  save_settings(options, trainer);
  if (is_restarted() ? finds_checkpoint(trainer) : options.resume) {
    resume(options, trainer);
    if (resumed) resumed();
  } else if (!restart_number()) {
    refuse_earlier_run(options, trainer);
  } else if (!is_restarted()) {
    clear_the_way(options, trainer);
  }
  trainer.run();
  if (stop.signal() == 0) return true;
  say_that_it_stopped(stop.signal(), trainer);
  return false;
}

}  // namespace examples
