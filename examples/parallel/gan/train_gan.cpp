// A generative adversarial network (I. Goodfellow et al., Generative adversarial nets, NIPS 2014)
// on ranks: two networks, two multi-node optimizers on one communicator, and batch normalization by
// the statistics of all ranks.
//
//   catena-run -n 4 train_gan --epochs 10
#include "catena/array/random.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/comm/factory.h"
#include "catena/comm/run_main.h"
#include "catena/datasets/prefetch.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/schedules.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/serializers/npz.h"
#include "common.h"

namespace gan {
namespace {

// Both networks with their optimizers on one rank.
class Game {
 public:
  Game(const CommunicatorPtr& comm, const Options& options)
      : device_(comm->device()),
        generator(comm),
        optimizer_g_(create_multi_node_optimizer(optimizers::Adam(options.rate, 0.5), comm)),
        optimizer_d_(create_multi_node_optimizer(optimizers::Adam(options.rate, 0.5), comm)) {
    generator.to(device_);
    discriminator.to(device_);
    optimizer_g_.setup(generator);
    optimizer_d_.setup(discriminator);
  }

  void set_rate(double rate) {
    optimizer_g_->set_lr(rate);
    optimizer_d_->set_lr(rate);
  }
  // An update of each. The discriminator gets the images as constants; the generator's gradient
  // flows through the discriminator, whose own gradients of that pass are not used.
  void step(const datasets::Batch& batch, training::Means& means) {
    const int64_t n = batch.size();
    const Variable fake = generator(noise(n));
    optimizer_d_.zero_grads();
    optimizer_d_.set_batch_weight(n, batch.global_count);
    const Variable real_score = discriminator(Variable::constant(batch.x())),
                   fake_score = discriminator(Variable::constant(fake.data()));
    const Variable loss_d = loss_of(real_score, true) + loss_of(fake_score, false);
    loss_d.backward();
    optimizer_d_.update();

    optimizer_g_.zero_grads();
    optimizer_g_.set_batch_weight(n, batch.global_count);
    const Variable loss_g = loss_of(discriminator(fake), true);
    loss_g.backward();
    optimizer_g_.update();
    means.add(numbers_of(loss_d, loss_g, real_score, fake_score), double(n));
  }
  // 64 images, of the same noise each time. In test state the ranks need not meet.
  Array samples() {
    const NoBackprop no_graph;
    const TestScope test(generator);
    return generator(Variable::constant(fixed_noise_)).data().to_cpu();
  }

 private:
  Variable noise(int64_t n) const {
    return Variable::constant(random::normal({n, kNoise}, 0, 1, {dtype::float32, device_}));
  }
  Device device_;
  Array fixed_noise_ = noise(64).data();

 public:
  Generator generator;
  Discriminator discriminator;

 private:
  MultiNodeOptimizer optimizer_g_, optimizer_d_;
};

int body(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  if (options.is_short) options.epochs = 2;
  const CommunicatorPtr comm = create_communicator();
  const DeviceScope scope(comm->device());
  const bool root = comm->rank() == 0;
  random::seed(options.seed);  // of the weights, which setup makes rank 0's
  Game game(comm, options);
  random::seed(options.seed + 1 + uint64_t(comm->rank()));  // other noise on each rank

  // Batches that are full: with the same number of samples the ranks meet in every layer.
  const datasets::DatasetPtr images = images_of(options);
  datasets::PrefetchIterator batches(
      images,
      datasets::ShuffledIterator(images->size(), options.batch, options.seed,
                                 datasets::IteratorOptions{.drop_last = true}),
      comm->device(), {comm->rank(), comm->size()});
  const int64_t steps = batches.batches_per_epoch();
  const optimizers::Schedule rate = optimizers::scaled_warmup(
      comm->size(), options.warmup * steps, [&](int64_t) { return options.rate; });

  if (root) print_heading(options);
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    training::Means means(metrics());
    for (int64_t step = 0; step < steps; ++step) {
      game.set_rate(rate(epoch * steps + step));
      game.step(*batches.next(), means);
    }
    means.reduce(comm.get());
    if (!root) continue;
    print_row(epoch + 1, means);
    write_picture(options, game.samples());
  }
  if (root) serializers::save(options.out + "/generator.npz", game.generator);
  return 0;
}

}  // namespace
}  // namespace gan

int main(int argc, char** argv) { return catena::run_main(argc, argv, gan::body); }
