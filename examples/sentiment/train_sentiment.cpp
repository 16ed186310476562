// Learns the labels of parse trees on one device, or on the ranks that catena-run started.
#include <cstdio>

#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/core/printable.h"
#include "catena/optimizers/ada_grad.h"
#include "catena/optimizers/hooks.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/serializers/npz.h"
#include "catena/training/output_folder.h"
#include "catena/training/trainer.h"
#include "made_trees.h"
#include "model.h"
#include "options.h"

namespace sentiment {
namespace {

namespace ds = catena::datasets;
namespace tr = catena::training;

void say_what(const Data& data) {
  size_t nodes = 0;
  for (const Tree& tree : data.train) nodes += tree.size();
  std::printf("%s: %zu trees of training with %zu nodes, %lld words; the first is\n%s\n",
              data.source.c_str(), data.train.size(), nodes,
              static_cast<long long>(data.vocabulary.size()),
              catena::printable_line(text_of(data.train[0], data.vocabulary)).c_str());
}

void print(const char* where, const Accuracy& accuracy) {
  std::printf("test accuracy of %s %.4f (%lld of %lld)\n", where, accuracy.share(),
              static_cast<long long>(accuracy.right), static_cast<long long>(accuracy.count));
}

int body(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  tr::prepare_output_folder(options.run.out);  // before anything takes its time
  const catena::CommunicatorPtr comm = examples::make_communicator(options.run);
  const catena::DeviceScope device(comm->device());
  const Data data = options.data.empty()
                        ? make_data(options.trees, options.labels, options.run.seed)
                        : load_data(options.data, options.labels);
  if (comm->rank() == 0) say_what(data);
  const auto batches_of = [&](const std::vector<Tree>& trees, const ds::PositionIterator& order) {
    return ds::PrefetchIterator(dataset_of(trees), order, comm->device(),
                                {comm->rank(), comm->size()}, {.collate = by_level});
  };
  constexpr int64_t kTested = 100;  // trees of a step of a test pass
  const auto train_size = std::ssize(data.train);
  ds::PrefetchIterator train =
      batches_of(data.train, ds::ShuffledIterator(train_size, options.run.batch, options.run.seed));
  ds::PrefetchIterator dev =
      batches_of(data.dev, ds::SerialIterator(std::ssize(data.dev), kTested));
  ds::PrefetchIterator test =
      batches_of(data.test, ds::SerialIterator(std::ssize(data.test), kTested));

  catena::random::seed(options.run.seed);
  RecursiveNet model(data.vocabulary.size(), options.units, options.labels);
  catena::optimizers::AdaGrad rule(options.lr);
  rule.add_hook("decay", catena::optimizers::weight_decay(1e-4));
  auto optimizer = catena::create_multi_node_optimizer(rule, comm);
  optimizer.setup(model);
  const auto score = [&](const ds::Batch& batch) { return score_of(model, batch); };
  tr::StandardUpdater updater(train, tr::make_step(optimizer, score));
  tr::TrainerOptions how = examples::trainer_options(options.run, {"loss", "roots"});
  how.report = {.epochs = options.report};
  tr::Trainer trainer(updater, model, optimizer, how);
  Accuracies of_dev;
  trainer.observe("dev_nodes", [&] {
    of_dev = accuracies_of(model, dev, *comm);
    return of_dev.nodes.share();
  });
  trainer.observe("dev_roots", [&] { return of_dev.roots.share(); });
  if (!examples::run(options.run, trainer, *comm)) return 0;

  const Accuracies of_test = accuracies_of(model, test, *comm);
  if (comm->rank() != 0) return 0;
  catena::serializers::save(options.run.out + "/model.npz", model);
  print("nodes", of_test.nodes);
  print("roots", of_test.roots);
  return 0;
}

}  // namespace
}  // namespace sentiment

int main(int argc, char** argv) { return catena::run_main(argc, argv, sentiment::body); }
