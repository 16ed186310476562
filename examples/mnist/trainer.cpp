// The MNIST programs' use of the library's trainer.
#include "trainer.h"

#include <cstdio>

#include "catena/datasets/mnist.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/serializers/npz.h"
#include "catena/training/captured_updater.h"
#include "catena/training/output_folder.h"
#include "catena/training/stop_on_signal.h"
#include "catena/training/trainer.h"

namespace mnist {

namespace ds = catena::datasets;
namespace tr = catena::training;
namespace F = catena::functions;

catena::Variables score(const catena::Variable& predictions, const catena::Array& labels) {
  return {F::softmax_cross_entropy(predictions, labels), F::accuracy(predictions, labels)};
}

namespace {

std::unique_ptr<tr::Updater> make_updater(const Options& options, const Program& program,
                                          ds::ResidentIterator& batches) {
  if (!options.graph) return std::make_unique<tr::StandardUpdater>(batches, program.step);
  CATENA_CHECK(DeviceError, program.device.is_cuda(),
               "--graph: CUDA graphs need a GPU, training runs on ", program.device);
  if (program.ranks)
    return std::make_unique<tr::CapturedUpdater>(batches, *program.ranks, program.step);
  return std::make_unique<tr::CapturedUpdater>(batches, program.optimizer, program.step);
}

std::unique_ptr<tr::Trainer> make_trainer(const Options& options, const Program& program,
                                          tr::Updater& updater) {
  tr::TrainerOptions o{
      .epochs = options.epochs, .out = options.out, .overwrite = options.overwrite};
  if (program.ranks)
    return std::make_unique<tr::Trainer>(updater, program.model, *program.ranks, o);
  return std::make_unique<tr::Trainer>(updater, program.model, program.optimizer, o);
}

// What the order of the samples depends on: a run that goes on with another one would not be the
// run that it says it is.
struct Settings {
  int64_t batch;
  uint64_t seed;
};

void check_settings(const Settings& saved, const Options& options, const std::string& path) {
  CATENA_CHECK(ValueError, saved.batch == options.batch && saved.seed == options.seed,
               "--resume: '", path, "' was made with --batch ", saved.batch, " --seed ", saved.seed,
               ", got --batch ", options.batch, " --seed ", options.seed,
               "; give the same ones, or start without --resume");
}

void resume(const Options& options, catena::Optimizer& optimizer, tr::Trainer& trainer) {
  CATENA_CHECK(IoError, trainer.has_checkpoint(), "--resume: there is no '",
               trainer.checkpoint_path(),
               "' to go on from; start without --resume, or name the folder of the earlier run "
               "with --out");
  trainer.resume();
  if (options.lr > 0 && options.lr != optimizer.lr()) {
    if (tr::prints())
      std::printf("--lr %g replaces the %g of the checkpoint\n", options.lr, optimizer.lr());
    optimizer.set_lr(options.lr);
  }
  if (trainer.epoch() >= options.epochs && tr::prints())
    std::printf("the checkpoint has %lld epochs already; ask for more with --epochs\n",
                static_cast<long long>(trainer.epoch()));
}

// The trainer refuses it too, but does not know the names of these options.
void refuse_earlier_run(const Options& options, const tr::Trainer& trainer) {
  CATENA_CHECK(ValueError, options.overwrite || !trainer.has_checkpoint(), "'",
               trainer.checkpoint_path(),
               "' is of an earlier run; go on from it with --resume, replace it with --overwrite, "
               "or choose another folder with --out");
}

}  // namespace

void train(const Options& options, const Program& program) {
  tr::prepare_output_folder(options.out);  // before anything takes its time
  const ds::Mnist data = ds::load_mnist({.folder = options.data, .pixels = {28, 28}});
  const ds::RankOf who =
      program.ranks ? ds::RankOf{program.ranks->comm().rank(), program.ranks->comm().size()}
                    : ds::RankOf{};
  ds::ResidentIterator batches(
      data.train, ds::ShuffledIterator(data.train->size(), options.batch, options.seed),
      program.device, who);
  ds::ResidentIterator test(data.test, ds::SerialIterator(data.test->size(), 1000), program.device,
                            who);
  const auto updater = make_updater(options, program, batches);
  const auto trainer = make_trainer(options, program, *updater);
  trainer->evaluate_on(test, program.score);
  trainer->checkpoint().add(
      "settings",
      [&] {
        return Settings{options.batch, options.seed};
      },
      [&](const Settings& saved) { check_settings(saved, options, trainer->checkpoint_path()); });
  if (options.cosine) trainer->schedule(cosine_rate(options));
  if (options.resume) {
    resume(options, program.optimizer, *trainer);
  } else {
    refuse_earlier_run(options, *trainer);
  }
  const auto& stop = trainer->extend(
      std::make_unique<tr::StopOnSignal>(program.ranks ? &program.ranks->comm() : nullptr));
  trainer->run();
  if (stop.signal() != 0) {
    if (tr::prints())
      std::printf("stopped by signal %d after update %lld; go on with --resume\n", stop.signal(),
                  static_cast<long long>(trainer->iteration()));
    return;
  }

  const double accuracy =
      trainer->row().empty() ? trainer->evaluate().at("accuracy") : trainer->value("test_accuracy");
  if (who.rank == 0) catena::serializers::save(options.out + "/model.npz", program.model);
  if (tr::prints()) std::printf("test accuracy %.4f\n", accuracy);
}

}  // namespace mnist
