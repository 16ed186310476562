// The networks of train_gan on different ranks: the generator on rank 0, the discriminator on rank
// 1. Made images travel to rank 1 by a differentiable message, and their gradient comes back.
//
//   catena-run -n 2 train_gan_split --epochs 10
#include "catena/array/random.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/comm/factory.h"
#include "catena/comm/run_main.h"
#include "catena/datasets/prefetch.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/functions.h"
#include "catena/serializers/npz.h"
#include "catena/training/scatter_dataset.h"
#include "common.h"

namespace gan {
namespace {

enum Rank { kGenerator, kDiscriminator };

// What either rank does in a step, and between epochs.
class Player {
 public:
  virtual ~Player() = default;
  virtual void step(const datasets::Batch& batch, training::Means& means) = 0;
  // After each epoch, with the means over its samples.
  virtual void end_epoch(int64_t /*epoch*/, training::Means& /*means*/) {}
  virtual void end() {}
};

class GeneratorPlayer final : public Player {
 public:
  GeneratorPlayer(Communicator& comm, const Options& options)
      : comm_(comm), options_(options), optimizer_(options.rate, 0.5) {
    generator_.to(comm.device());
    optimizer_.setup(generator_);
    print_heading(options);
  }
  // Backward from what send returns waits for the gradient of the images.
  void step(const datasets::Batch& batch, training::Means& /*means*/) override {
    const Variable sent = F::send(generator_(noise(batch.size())), comm_, kDiscriminator);
    optimizer_.zero_grads();
    sent.backward();
    optimizer_.update();
  }
  void end_epoch(int64_t epoch, training::Means& means) override {
    print_row(epoch, means);
    const NoBackprop no_graph;
    const TestScope test(generator_);
    write_picture(options_, generator_(fixed_noise_).data().to_cpu());
  }
  void end() override { serializers::save(options_.out + "/generator.npz", generator_); }

 private:
  Variable noise(int64_t n) const {
    return Variable::constant(random::normal({n, kNoise}, 0, 1, {dtype::float32, comm_.device()}));
  }
  Communicator& comm_;
  Options options_;
  Generator generator_{nullptr};  // its batches are whole
  optimizers::Adam optimizer_;
  Variable fixed_noise_ = noise(64);
};

class DiscriminatorPlayer final : public Player {
 public:
  DiscriminatorPlayer(Communicator& comm, const Options& options)
      : comm_(comm), optimizer_(options.rate, 0.5) {
    discriminator_.to(comm.device());
    optimizer_.setup(discriminator_);
  }
  // Learns from the images as constants; then the generator's loss goes back through the message.
  void step(const datasets::Batch& batch, training::Means& means) override {
    const Variable fake = F::recv(comm_, kGenerator);
    optimizer_.zero_grads();
    const Variable real_score = discriminator_(Variable::constant(batch.x())),
                   fake_score = discriminator_(Variable::constant(fake.data()));
    const Variable loss_d = loss_of(real_score, true) + loss_of(fake_score, false);
    loss_d.backward();
    optimizer_.update();
    const Variable loss_g = loss_of(discriminator_(fake), true);
    loss_g.backward();
    means.add(numbers_of(loss_d, loss_g, real_score, fake_score), double(batch.size()));
  }

 private:
  Communicator& comm_;
  Discriminator discriminator_;
  optimizers::Adam optimizer_;
};

std::unique_ptr<Player> player_of(Communicator& comm, const Options& options) {
  random::seed(options.seed);
  if (comm.rank() == kGenerator) return std::make_unique<GeneratorPlayer>(comm, options);
  return std::make_unique<DiscriminatorPlayer>(comm, options);
}

int body(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  if (options.is_short) options.epochs = 2;
  const CommunicatorPtr comm = create_communicator();
  CATENA_CHECK(ValueError, comm->size() == 2, "train_gan_split: ", comm->size(),
               " rank(s), expected 2; start it with catena-run -n 2");
  const DeviceScope scope(comm->device());
  // The generator reads no images, but goes through as many batches.
  datasets::DatasetPtr images = images_of(options);
  if (comm->rank() == kGenerator) images = training::create_empty_dataset(images);
  datasets::PrefetchIterator batches(
      images,
      datasets::ShuffledIterator(images->size(), options.batch, options.seed,
                                 datasets::IteratorOptions{.drop_last = true}),
      comm->device());
  const std::unique_ptr<Player> player = player_of(*comm, options);
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    training::Means means(metrics());
    for (int64_t step = 0; step < batches.batches_per_epoch(); ++step)
      player->step(*batches.next(), means);
    means.reduce(comm.get());  // the generator's rank has none of its own
    player->end_epoch(epoch + 1, means);
  }
  player->end();
  return 0;
}

}  // namespace
}  // namespace gan

int main(int argc, char** argv) { return catena::run_main(argc, argv, gan::body); }
