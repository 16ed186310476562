// One rank of the tests of training over ranks, with everything that its run needs.
#pragma once

#include "catena/comm/factory.h"
#include "catena/training/trainer.h"
#include "training/problem.h"

namespace catena::training {

// Keeps something for each rank, and a mean of all.
struct RankNet : testing::Net {
  OwnedPersistent seen{zeros({2}, dtype::int64), OverRanks::kPerRank};
  OwnedPersistent average{zeros({1}), OverRanks::kMean};
  RankNet() : Net(Dtype::kFloat32) {}
  CATENA_FUNCTIONS(l1, l2, l3, extra, seen, average)
};

struct OneRank {
  RankNet model;
  MultiNodeOptimizer optimizer;
  double factor = 1;
  datasets::ResidentIterator batches, test;
  StandardUpdater updater;
  Trainer trainer;

  OneRank(Communicator& comm, int64_t batch, TrainerOptions options,
          parallel::Sharding sharding = parallel::Sharding::kNone)
      : optimizer(
            create_multi_node_optimizer(optimizers::Adam(0.01), comm, {.sharding = sharding})),
        batches(make_data(), datasets::ShuffledIterator(kSamples, batch, 1), comm.device(),
                {comm.rank(), comm.size()}),
        test(make_data(7), datasets::SerialIterator(kSamples, 10), comm.device(),
             {comm.rank(), comm.size()}),
        updater(batches, make_step(optimizer, score_of(model, &factor))),
        trainer((model.to(comm.device()), optimizer.setup(model), updater), model, optimizer,
                options) {
    trainer.evaluate_on(test, score_of(model));
  }
};

}  // namespace catena::training
