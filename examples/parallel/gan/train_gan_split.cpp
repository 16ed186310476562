// The networks of train_gan on different ranks: the generator on rank 0, the discriminator on rank
// 1. Made images travel to rank 1 by a differentiable message, and their gradient comes back.
//
//   catena-run -n 2 train_gan_split --epoch 10
#include <cstdio>

#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/comm/stop_signals.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/functions.h"
#include "catena/serializers/npz.h"
#include "catena/training/evaluator.h"
#include "catena/training/report.h"
#include "catena/training/scatter_dataset.h"
#include "common.h"

namespace gan {
namespace {

enum Rank { kGenerator, kDiscriminator };

// What either rank does in a step, and when a row is due.
class Player {
 public:
  virtual ~Player() = default;
  virtual void step(const datasets::Batch& batch, training::Means& means) = 0;
  virtual void show(const training::Row& /*row*/) {}
  virtual void end() {}
};

class GeneratorPlayer final : public Player {
 public:
  GeneratorPlayer(Communicator& comm, const Options& options)
      : comm_(comm),
        options_(options),
        optimizer_(options.rate, {.beta1 = 0.5}),
        report_({.log = options.run.out + "/log.json"}) {
    generator_.to(comm.device());
    optimizer_.setup(generator_);
  }
  // Backward from what send returns waits for the gradient of the images.
  void step(const datasets::Batch& batch, training::Means& /*means*/) override {
    const Variable noise = Variable::constant(noise_of(batch.size(), comm_.device()));
    const Variable sent = F::send(generator_(noise), comm_, kDiscriminator);
    optimizer_.zero_grads();
    sent.backward();
    optimizer_.update();
  }
  void show(const training::Row& row) override {
    report_.add(row);
    write_samples(options_, generator_, fixed_noise_);
  }
  void end() override { serializers::save(options_.run.out + "/generator.npz", generator_); }

 private:
  Communicator& comm_;
  Options options_;
  Generator generator_{nullptr};  // its batches are whole
  optimizers::Adam optimizer_;
  training::Report report_;
  Array fixed_noise_ = noise_of(64, comm_.device());
};

class DiscriminatorPlayer final : public Player {
 public:
  DiscriminatorPlayer(Communicator& comm, const Options& options)
      : comm_(comm), optimizer_(options.rate, {.beta1 = 0.5}) {
    discriminator_.to(comm.device());
    optimizer_.setup(discriminator_);
  }
  // Learns from the images as constants; then the generator's loss goes back through the message.
  void step(const datasets::Batch& batch, training::Means& means) override {
    const Variable fake = F::recv(comm_, kGenerator);
    optimizer_.zero_grads();
    const Scores scores(discriminator_, batch.x(), fake);
    const Variable loss_d = scores.loss();
    loss_d.backward();
    optimizer_.update();
    const Variable loss_g = loss_of(discriminator_(fake), true);
    loss_g.backward();
    means.add(numbers_of(loss_d, loss_g, scores), double(batch.size()));
  }

 private:
  Communicator& comm_;
  Discriminator discriminator_;
  optimizers::Adam optimizer_;
};

std::unique_ptr<Player> player_of(Communicator& comm, const Options& options) {
  random::seed(options.run.seed);
  if (comm.rank() == kGenerator) return std::make_unique<GeneratorPlayer>(comm, options);
  return std::make_unique<DiscriminatorPlayer>(comm, options);
}

// The generator reads no images, but goes through as many batches.
datasets::PrefetchIterator batches_on(const Communicator& comm, const Options& options) {
  datasets::DatasetPtr images = images_of(options);
  if (comm.rank() == kGenerator) images = training::create_empty_dataset(images);
  return batches_of(images, options, comm.device(), {});
}

// The means since the last row; the generator's rank has none of its own.
training::Row row_of(double epoch, training::Means& means, Communicator& comm) {
  training::Row row{{"epoch", epoch}};
  means.reduce(&comm);
  for (const std::string& name : metrics()) row.emplace_back(name, means.value(name));
  means.clear();
  return row;
}

int body(int argc, char** argv) {
  const Options options = parse_options(
      argc, argv, "Trains a generative adversarial network with each of its networks on a rank.",
      Networks::kOne);
  const CommunicatorPtr comm = examples::begin(options.run);
  CATENA_CHECK(ValueError, comm->size() == 2, "train_gan_split: ", comm->size(),
               " rank(s), expected 2; start it with catena-run -n 2");
  const DeviceScope scope(comm->device());
  datasets::PrefetchIterator batches = batches_on(*comm, options);
  const std::unique_ptr<Player> player = player_of(*comm, options);
  const int64_t steps = batches.batches_per_epoch();
  const int64_t of_row = options.run.report > 0 ? options.run.report : steps;
  const comm::StopSignals stop(examples::stop_signals());
  training::Means means(metrics());
  for (int64_t step = 1; step <= options.run.epochs * steps; ++step) {
    player->step(*batches.next(), means);
    if (step % of_row == 0) player->show(row_of(double(step) / double(steps), means, *comm));
    if (stop.received(*comm) == 0) continue;
    if (comm->rank() == kGenerator)
      std::printf("stopped after update %lld\n", static_cast<long long>(step));
    break;
  }
  player->end();
  return 0;
}

}  // namespace
}  // namespace gan

int main(int argc, char** argv) { return catena::run_main(argc, argv, gan::body); }
