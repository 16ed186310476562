// The MNIST programs' use of the library's trainer.
#include "trainer.h"

#include <cstdio>

#include "catena/comm/factory.h"
#include "catena/datasets/mnist.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/serializers/npz.h"
#include "catena/training/captured_updater.h"
#include "catena/training/output_folder.h"
#include "catena/training/trainer.h"

namespace mnist {

namespace ds = catena::datasets;
namespace tr = catena::training;
namespace F = catena::functions;

catena::Variables score(const catena::Variable& predictions, const catena::Array& labels) {
  return {F::softmax_cross_entropy(predictions, labels), F::accuracy(predictions, labels)};
}

catena::Device one_device(const Options& options) {
  const std::vector<catena::Device> named = examples::devices_of(options.run);
  if (!named.empty()) return named[0];
  const auto launch = catena::comm::launch_environment();
  CATENA_CHECK(ValueError, launch.size == 1, "this program trains on one device by itself, but ",
               launch.source, " says that the job has ", launch.size,
               " ranks; start train_mnist_distributed, or choose the device with --device");
  return catena::create_communicator("threads")->device();
}

namespace {

std::unique_ptr<tr::Updater> make_updater(const Options& options, const Program& program,
                                          ds::ResidentIterator& batches) {
  if (!options.run.graph) return std::make_unique<tr::StandardUpdater>(batches, program.step);
  CATENA_CHECK(DeviceError, program.device.is_cuda(),
               "--graph: CUDA graphs need a GPU, training runs on ", program.device);
  if (program.ranks)
    return std::make_unique<tr::CapturedUpdater>(batches, *program.ranks, program.step);
  return std::make_unique<tr::CapturedUpdater>(batches, program.optimizer, program.step);
}

std::unique_ptr<tr::Trainer> make_trainer(const Options& options, const Program& program,
                                          tr::Updater& updater) {
  const tr::TrainerOptions o = examples::trainer_options(options.run);
  if (program.ranks)
    return std::make_unique<tr::Trainer>(updater, program.model, *program.ranks, o);
  return std::make_unique<tr::Trainer>(updater, program.model, program.optimizer, o);
}

void replace_rate(const Options& options, catena::Optimizer& optimizer) {
  if (options.lr <= 0 || options.lr == optimizer.lr()) return;
  if (tr::prints())
    std::printf("--lr %g replaces the %g of the checkpoint\n", options.lr, optimizer.lr());
  optimizer.set_lr(options.lr);
}

}  // namespace

void train(const Options& options, const Program& program) {
  tr::prepare_output_folder(options.run.out);  // before anything takes its time
  const ds::Mnist data = ds::load_mnist({.folder = options.data, .pixels = {28, 28}});
  const ds::RankOf who =
      program.ranks ? ds::RankOf{program.ranks->comm().rank(), program.ranks->comm().size()}
                    : ds::RankOf{};
  ds::ResidentIterator batches(
      data.train, ds::ShuffledIterator(data.train->size(), options.run.batch, options.run.seed),
      program.device, who);
  ds::ResidentIterator test(data.test, ds::SerialIterator(data.test->size(), 1000), program.device,
                            who);
  const auto updater = make_updater(options, program, batches);
  const auto trainer = make_trainer(options, program, *updater);
  trainer->evaluate_on(test, program.score);
  if (options.cosine) trainer->schedule(cosine_rate(options));
  catena::Communicator* const comm = program.ranks ? &program.ranks->comm() : nullptr;
  if (!examples::run(options.run, *trainer, comm,
                     [&] { replace_rate(options, program.optimizer); }))
    return;

  const double accuracy =
      trainer->row().empty() ? trainer->evaluate().at("accuracy") : trainer->value("test_accuracy");
  if (who.rank == 0) catena::serializers::save(options.run.out + "/model.npz", program.model);
  if (tr::prints()) std::printf("test accuracy %.4f\n", accuracy);
}

}  // namespace mnist
