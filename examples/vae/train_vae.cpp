// Trains a variational auto-encoder on one device, or on the ranks that catena-run started.
#include <cstdio>

#include "catena/array/manipulation.h"
#include "catena/array/random.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/comm/run_main.h"
#include "catena/datasets/mnist.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/serializers/npz.h"
#include "catena/training/trainer.h"
#include "common/pictures.h"
#include "model.h"
#include "options.h"

namespace vae {
namespace {

namespace ds = catena::datasets;
namespace tr = catena::training;

// samples.pgm: images of random hidden numbers. reconstructed.pgm: test images, and under each row
// of them what the model makes of them.
void write_results(const Options& options, Vae& model, const Array& test) {
  const catena::TestScope in_test_state(model);
  const catena::NoBackprop no_graph;
  constexpr int64_t kColumns = 8;
  const auto square = [](const Array& images) { return images.reshape({-1, 28, 28}); };
  const Array z = catena::random::normal({kColumns * kColumns, options.hidden}, 0, 1,
                                         {catena::dtype::float32, test.device()});
  examples::write_pictures(options.run.out + "/samples.pgm",
                           square(model.images(Variable::constant(z)).data()), kColumns);
  const Array some = test(catena::Slice(0, std::min<int64_t>(kColumns, test.length())));
  const Array made = model.images(model.encoded(Variable::constant(some)).mean).data();
  examples::write_pictures(options.run.out + "/reconstructed.pgm",
                           square(catena::concatenate({some, made}, 0)), some.length());
  catena::serializers::save(options.run.out + "/model.npz", model);
  std::printf("samples.pgm and reconstructed.pgm are in '%s'\n", options.run.out.c_str());
}

int body(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const catena::CommunicatorPtr comm = examples::begin(options.run);
  const catena::DeviceScope device(comm->device());
  const ds::RankOf who{comm->rank(), comm->size()};
  const ds::Mnist data = ds::load_mnist({.folder = options.data});
  ds::ResidentIterator batches(
      data.train, ds::ShuffledIterator(data.train->size(), options.run.batch, options.run.seed),
      comm->device(), who);
  ds::ResidentIterator test(data.test, ds::SerialIterator(data.test->size(), 1000), comm->device(),
                            who);

  // Ranks have equal weights and draw different hidden numbers.
  catena::random::seed(options.run.seed + static_cast<uint64_t>(comm->rank()));
  Vae model(data.train->columns()[0].shape[0], options.hidden, options.units);
  auto optimizer = catena::create_multi_node_optimizer(catena::optimizers::Adam(), comm);
  optimizer.setup(model);
  const auto score = [&](const ds::Batch& batch) {
    return model.losses(batch.x(), options.draws, options.weight);
  };
  const auto updater =
      examples::make_updater(options.run, batches, optimizer, tr::make_step(optimizer, score));
  tr::Trainer trainer(*updater, model, optimizer,
                      examples::trainer_options(options.run, {"loss", "reconstruction"}));
  trainer.evaluate_on(test, score);
  if (examples::run(options.run, trainer, *comm) && comm->rank() == 0)
    write_results(options, model, test.columns()[0]);
  return 0;
}

}  // namespace
}  // namespace vae

int main(int argc, char** argv) { return catena::run_main(argc, argv, vae::body); }
