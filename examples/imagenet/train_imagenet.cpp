// Trains a network on pictures, on one device, or on the ranks that catena-run started.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/schedules.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/serializers/npz.h"
#include "catena/training/model_summary.h"
#include "catena/training/trainer.h"
#include "data.h"
#include "options.h"
#include "records.h"

namespace imagenet {
namespace {

namespace ds = catena::datasets;
namespace tr = catena::training;

struct Data {
  ds::DatasetPtr train, val;
  std::function<double()> skipped = {};  // pictures of this rank so far; empty: none can be
};

// Records where the name ends in ".npy", else a list.
std::shared_ptr<const examples::Source> open_source(const std::string& file,
                                                    const std::string& root) {
  if (file.ends_with(".npy")) return open_records(file);
  return std::make_shared<examples::ListSource>(examples::read_list(file, root));
}

Data make_data(const Options& options) {
  examples::PictureOptions of_train{.insize = insize_of(options.arch),
                                    .crops = examples::Crops::kRandom,
                                    .seed = options.run.seed,
                                    .threads = options.threads},
      of_val = of_train;
  of_val.crops = examples::Crops::kCentre;
  of_val.seed += 1;  // other noise
  if (options.synthetic > 0) {
    return {std::make_shared<SyntheticDataset>(options.synthetic, of_train),
            std::make_shared<SyntheticDataset>((options.synthetic + 3) / 4, of_val)};
  }
  const catena::Array mean = load_mean(options.mean, of_train.insize);
  using examples::PictureDataset;
  const auto train = std::make_shared<PictureDataset>(open_source(options.train, options.root),
                                                      mean, of_train),
             val = std::make_shared<PictureDataset>(open_source(options.val, options.root), mean,
                                                    of_val);
  return {train, val, [train, val] { return double(train->skipped() + val->skipped()); }};
}

// The layers for a batch of two pictures, as they are called in training.
void print_summary(Network& network, catena::Device device) {
  const Array pictures =
      catena::zeros({2, 3, network.insize(), network.insize()}, {catena::dtype::float32, device});
  std::cout << tr::summary(network, Variable::constant(pictures)) << std::flush;
}

// Reads ahead on a thread of its own, on a CPU as well: decoding takes long.
ds::PrefetchIterator batches_of(const ds::DatasetPtr& data, const ds::PositionIterator& order,
                                const catena::Communicator& comm) {
  return {data, order, comm.device(), {comm.rank(), comm.size()}, {.background = true}};
}

catena::parallel::MultiNodeOptimizer make_optimizer(const Options& options,
                                                    const catena::CommunicatorPtr& comm) {
  namespace rules = catena::optimizers;
  if (options.arch == Arch::kVit)
    return catena::create_multi_node_optimizer(rules::AdamW(options.lr, {.decay = 0.05}), comm);
  return catena::create_multi_node_optimizer(rules::MomentumSGD(options.lr, 0.9), comm);
}

int body(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const catena::CommunicatorPtr comm = examples::begin(options.run);
  const catena::DeviceScope device(comm->device());
  const Data data = make_data(options);
  const ds::ShuffledIterator order(data.train->size(), options.run.batch, options.run.seed,
                                   {.drop_last = true});
  ds::PrefetchIterator train = batches_of(data.train, order, *comm);
  ds::PrefetchIterator val =
      batches_of(data.val, ds::SerialIterator(data.val->size(), options.val_batch), *comm);

  // Ranks have equal weights and drop different numbers.
  catena::random::seed(options.run.seed + static_cast<uint64_t>(comm->rank()));
  const std::unique_ptr<Network> network = make_network(options.arch);
  if (options.summary && comm->rank() == 0) print_summary(*network, comm->device());
  catena::parallel::MultiNodeOptimizer optimizer = make_optimizer(options, comm);
  optimizer.setup(*network);

  const auto score = [&](const ds::Batch& batch) {
    return score_of(*network, batch.x(), batch.t());
  };
  const std::string drawing = comm->rank() == 0 ? options.drawing : "";
  tr::StandardUpdater updater(
      train, tr::make_step(optimizer, examples::drawing_the_first(score, drawing)));
  tr::Trainer trainer(updater, *network, optimizer, examples::trainer_options(options.run));
  trainer.evaluate_on(val, score);
  trainer.schedule(catena::optimizers::exponential(options.lr, 0.97));
  if (data.skipped)
    trainer.observe("skipped", tr::over_ranks(data.skipped, comm, catena::comm::Reduction::kSum));
  if (examples::run(options.run, trainer, *comm) && comm->rank() == 0)
    catena::serializers::save(options.run.out + "/model.npz", *network);
  return 0;
}

}  // namespace
}  // namespace imagenet

int main(int argc, char** argv) { return catena::run_main(argc, argv, imagenet::body); }
