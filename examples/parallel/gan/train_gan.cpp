// A generative adversarial network (I. Goodfellow et al., Generative adversarial nets, NIPS 2014)
// on ranks: two networks, two multi-node optimizers on one communicator, and batch normalization by
// the statistics of all ranks.
//
//   catena-run -n 4 train_gan --epoch 10
#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/schedules.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/serializers/npz.h"
#include "catena/training/trainer.h"
#include "common.h"

namespace gan {
namespace {

// Both networks, as the one model that a trainer saves.
struct Both : FunctionSet {
  Generator generator;
  Discriminator discriminator;
  CATENA_FUNCTIONS(generator, discriminator)
  explicit Both(const CommunicatorPtr& comm) : generator(comm) {}
};

// The networks with their optimizers on one rank.
class Game {
 public:
  Game(const CommunicatorPtr& comm, const Options& options)
      : networks(comm),
        optimizer_g(
            create_multi_node_optimizer(optimizers::Adam(options.rate, {.beta1 = 0.5}), comm)),
        optimizer_d(
            create_multi_node_optimizer(optimizers::Adam(options.rate, {.beta1 = 0.5}), comm)),
        device_(comm->device()) {
    networks.to(device_);
    optimizer_g.setup(networks.generator);
    optimizer_d.setup(networks.discriminator);
  }
  // An update of each. The discriminator gets the images as constants; the generator's gradient
  // flows through the discriminator, whose own gradients of that pass are not used.
  Arrays step(const datasets::Batch& batch) {
    const int64_t n = batch.size();
    const Variable fake = networks.generator(Variable::constant(noise_of(n, device_)));
    optimizer_d.zero_grads();
    optimizer_d.set_batch_weight(n, batch.global_count);
    const Scores scores(networks.discriminator, batch.x(), fake);
    const Variable loss_d = scores.loss();
    loss_d.backward();
    optimizer_d.update();

    optimizer_g.zero_grads();
    optimizer_g.set_batch_weight(n, batch.global_count);
    const Variable loss_g = loss_of(networks.discriminator(fake), true);
    loss_g.backward();
    optimizer_g.update();
    return numbers_of(loss_d, loss_g, scores);
  }

  Both networks;
  MultiNodeOptimizer optimizer_g, optimizer_d;

 private:
  Device device_;
};

// The rate of both rises from that of one rank to that of all.
void schedule(training::Trainer& trainer, Game& game, const Options& options, int ranks,
              int64_t warmup) {
  const optimizers::Schedule rate =
      optimizers::scaled_warmup(ranks, warmup, [rate = options.rate](int64_t) { return rate; });
  const auto add = [&](MultiNodeOptimizer& optimizer, const char* name) {
    trainer.extend(std::make_unique<training::LearningRate>(
        optimizer.actual_optimizer(), rate, training::Trigger{.iterations = 1}, name));
  };
  add(game.optimizer_g, "rate of the generator");
  add(game.optimizer_d, "rate of the discriminator");
}

int body(int argc, char** argv) {
  const Options options = parse_options(
      argc, argv, "Trains a generative adversarial network on all ranks that catena-run started.",
      Networks::kBoth);
  const CommunicatorPtr comm = examples::begin(options.run);
  const DeviceScope scope(comm->device());
  const bool root = comm->rank() == 0;
  random::seed(options.run.seed);  // of the weights, which setup makes rank 0's
  const Array fixed_noise = noise_of(64, comm->device());
  Game game(comm, options);
  random::seed(options.run.seed + 1 + uint64_t(comm->rank()));  // other noise on each rank

  datasets::PrefetchIterator batches =
      batches_of(images_of(options), options, comm->device(), {comm->rank(), comm->size()});
  training::StandardUpdater updater(batches,
                                    [&](const datasets::Batch& batch) { return game.step(batch); });
  training::Trainer trainer(updater, game.networks, {game.optimizer_g, game.optimizer_d},
                            examples::trainer_options(options.run, metrics()));
  schedule(trainer, game, options, comm->size(), options.warmup * batches.batches_per_epoch());
  trainer.extend({.rows = true}, [&](training::Trainer&) {
    if (root) write_samples(options, game.networks.generator, fixed_noise);
  });
  if (examples::run(options.run, trainer, *comm) && root)
    serializers::save(options.run.out + "/generator.npz", game.networks.generator);
  return 0;
}

}  // namespace
}  // namespace gan

int main(int argc, char** argv) { return catena::run_main(argc, argv, gan::body); }
