// Batches of one rank for all, one order for all, and ranks that read their own parts.
#include "catena/training/multi_node_iterator.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/datasets/views.h"
#include "catena/testing.h"
#include "catena/training/part_iterator.h"
#include "catena/training/scatter_dataset.h"
#include "error_text.h"
#include "set_up.h"
#include "training/one_rank.h"

namespace catena::training {
namespace {

std::vector<double> rows_of(const datasets::Batch& batch) {
  return batch.x().to_cpu().to_vector<double>();
}

TEST(MultiNodeIterator, AllRanksGetTheMastersBatches) {
  for (const int ranks : {1, 2, 3})
    for (const int master : {0, ranks - 1}) {
      datasets::PrefetchIterator alone(make_data(), datasets::ShuffledIterator(kSamples, 5, 3),
                                       cpu(0));
      std::vector<std::vector<double>> expected;
      for (int i = 0; i < 12; ++i) expected.push_back(rows_of(*alone.next()));
      comm::run_threads(ranks, [&](Communicator& comm) {
        std::unique_ptr<datasets::PrefetchIterator> own;
        if (comm.rank() == master)
          own = std::make_unique<datasets::PrefetchIterator>(
              make_data(), datasets::ShuffledIterator(kSamples, 5, 3), comm.device());
        MultiNodeIterator batches =
            create_multi_node_iterator(own.get(), comm.shared_from_this(), master);
        EXPECT_EQ(batches.size(), kSamples);
        EXPECT_EQ(batches.batches_per_epoch(), 5);
        EXPECT_TRUE(batches.repeats());
        datasets::IteratorState after_six;
        for (int i = 0; i < 12; ++i) {
          const auto batch = batches.next();
          EXPECT_EQ(rows_of(*batch), expected[size_t(i)]);
          EXPECT_EQ(batch->x().device(), comm.device());
          EXPECT_EQ(batch->size(), i % 5 == 4 ? 3 : 5);
          EXPECT_EQ(batches.is_new_epoch(), i % 5 == 4);
          EXPECT_EQ(batch->place.batch, 5);
          EXPECT_EQ(batch->weight, 1) << "all ranks have all of it";
          if (i == 5) after_six = batches.state();
        }
        EXPECT_EQ(batches.epoch(), 2);
        batches.set_state(after_six);
        EXPECT_FALSE(batches.is_new_epoch());
        EXPECT_EQ(rows_of(*batches.next()), expected[6]);
        batches.set_state({kSamples, 3, 1, 0});
        EXPECT_TRUE(batches.is_new_epoch());
      });
    }
}

TEST(MultiNodeIterator, EndsAndFailsOnAllRanks) {
  comm::run_threads(2, [](Communicator& comm) {
    const auto fails = datasets::map(make_data(), [](const Arrays& sample) -> Arrays {
      if (sample[0].shape()[0] > 0) throw ValueError("a broken file");
      return sample;
    });
    const bool master = comm.rank() == 0;
    datasets::PrefetchIterator own(make_data(), datasets::SerialIterator(kSamples, 20),
                                   comm.device()),
        broken(fails, datasets::SerialIterator(kSamples, 20), comm.device());
    MultiNodeIterator batches(master ? &own : nullptr, comm.shared_from_this());
    EXPECT_TRUE(batches.next() && batches.next());
    EXPECT_FALSE(batches.next());
    MultiNodeIterator failing(master ? &broken : nullptr, comm.shared_from_this());
    expect_contains(error_of<ValueError>([&] { failing.next(); }), {"a broken file"});
  });
  expect_contains(error_of<ValueError>([] {
                    comm::run_threads(2, [](Communicator& comm) {
                      MultiNodeIterator(nullptr, comm.shared_from_this());
                    });
                  }),
                  {"rank 0 has no iterator and is the master"});
  expect_contains(error_of<ValueError>([] { MultiNodeIterator(nullptr, nullptr); }),
                  {"no iterator was given"});
}

TEST(SynchronizedIterator, HasTheRootsOrder) {
  comm::run_threads(3, [](Communicator& comm) {
    datasets::ShuffledIterator own(20, 6, uint64_t(comm.rank()) + 4);
    if (comm.rank() == 0) own.skip();
    datasets::PositionIterator one = create_synchronized_iterator(own, comm.shared_from_this());
    datasets::ShuffledIterator expected(20, 6, 4);
    expected.skip();
    for (int i = 0; i < 5; ++i) {
      const auto a = one.next(), b = expected.next();
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    }
    datasets::PrefetchIterator batches(
        make_data(), datasets::ShuffledIterator(kSamples, 5, uint64_t(comm.rank())), comm.device());
    synchronize_iterator(batches, comm.shared_from_this(), 2);
    EXPECT_EQ(batches.state().seed, 2u);
    synchronize_iterator(batches, nullptr);
  });
  const auto error = [](const std::function<void(Communicator&)>& call) {
    return error_of<ValueError>([&] { comm::run_threads(2, call); });
  };
  expect_contains(error([](Communicator& comm) {
                    create_synchronized_iterator(datasets::ShuffledIterator(20 + comm.rank(), 5, 1),
                                                 comm.shared_from_this());
                  }),
                  {"the number of samples in an epoch is 20 on rank 0, 21 on rank 1"});
  expect_contains(error([](Communicator& comm) {
                    create_synchronized_iterator(datasets::ShuffledIterator(20, 5 + comm.rank(), 1),
                                                 comm.shared_from_this());
                  }),
                  {"the batch size is 5 on rank 0, 6 on rank 1"});
  expect_contains(error([](Communicator& comm) {
                    create_synchronized_iterator(
                        comm.rank() == 0
                            ? datasets::PositionIterator(datasets::ShuffledIterator(20, 5, 1))
                            : datasets::PositionIterator(datasets::SerialIterator(20, 5, true)),
                        comm.shared_from_this());
                  }),
                  {"the order of one seed on rank 1 differs from that on rank 0"});
}

// Every sample once an epoch, whatever the parts, with the counts and weights of all ranks.
TEST(PartIterator, GoesThroughTheParts) {
  for (const std::vector<int64_t>& cuts :
       {std::vector<int64_t>{0, 23}, {0, 12, 23}, {0, 3, 20, 23}, {0, 0, 23}})
    for (const bool shuffle : {false, true}) {
      const int ranks = int(cuts.size()) - 1;
      comm::run_threads(ranks, [&](Communicator& comm) {
        const auto r = size_t(comm.rank());
        std::vector<int64_t> mine;
        for (int64_t i = cuts[r]; i < cuts[r + 1]; ++i) mine.push_back(i);
        const datasets::DatasetPtr numbers =
            std::make_shared<datasets::TupleDataset>(Arrays{arange(kSamples, dtype::float64)});
        PartIterator batches(datasets::subset(numbers, mine), 4, comm.device(),
                             comm.shared_from_this(), {.shuffle = shuffle, .seed = 3});
        EXPECT_EQ(batches.size(), kSamples);
        std::vector<double> first_epoch;
        std::vector<std::vector<double>> all;
        std::vector<datasets::IteratorState> states;
        for (int64_t i = 0; i < 2 * batches.batches_per_epoch(); ++i) {
          states.push_back(batches.state());
          const auto batch = batches.next();
          const int64_t of_all = comm.all_reduce_value(batch->size());
          EXPECT_EQ(batch->global_count, of_all);
          EXPECT_EQ(batch->weight, double(batch->size()) / double(of_all));
          all.push_back(rows_of(*batch));
          EXPECT_EQ(batches.is_new_epoch(), (i + 1) % batches.batches_per_epoch() == 0);
          if (batches.epoch() == 0 || batches.is_new_epoch())
            if (i < batches.batches_per_epoch())
              first_epoch.insert(first_epoch.end(), all.back().begin(), all.back().end());
        }
        EXPECT_EQ(batches.epoch(), 2);
        std::sort(first_epoch.begin(), first_epoch.end());
        EXPECT_EQ(first_epoch, std::vector<double>(mine.begin(), mine.end()));
        for (size_t i = 0; i < states.size(); ++i) {  // resumed anywhere
          batches.set_state(states[i]);
          for (size_t k = i; k < states.size(); ++k) EXPECT_EQ(rows_of(*batches.next()), all[k]);
        }
        EXPECT_THROW(batches.set_state({kSamples, 3, 0, 1}), ValueError);
      });
    }
}

// Trains like any other iterator: the ranks agree in count, weight and order.
// Layers that all ranks call get an empty batch of the right form.
TEST(PartIterator, EmptyBatchesOfSamplesOfAnyShapeHaveArrays) {
  comm::run_threads(2, [](Communicator& comm) {
    std::vector<Arrays> samples;
    for (int i = 0; i < 2 - comm.rank(); ++i)
      samples.push_back({full({2, 3}, i, {dtype::float32, cpu(0)}), zeros({}, dtype::int32)});
    PartIterator batches(std::make_shared<datasets::ListDataset>(samples), 1, comm.device(),
                         comm.shared_from_this(), {.repeat = false});
    batches.next();
    const auto last = batches.next();
    ASSERT_TRUE(last);
    ASSERT_EQ(last->arrays.size(), 2u);
    EXPECT_EQ(last->size(), 1 - comm.rank());
    EXPECT_EQ(last->x().shape(), (Shape{1 - comm.rank(), 2, 3}));
    EXPECT_EQ(last->x().device(), comm.device());
    EXPECT_EQ(last->t().dtype(), dtype::int32);
  });
}

TEST(PartIterator, TrainsOnScatteredData) {
  comm::run_threads(3, [](Communicator& comm) {
    const datasets::DatasetPtr part = scatter_dataset(comm.rank() == 0 ? make_data() : nullptr,
                                                      comm.shared_from_this(), {.shuffle = true});
    RankNet model;
    auto optimizer = testing::set_up(model, optimizers::Adam(0.01), comm);
    PartIterator batches(part, 3, comm.device(), comm.shared_from_this());
    StandardUpdater updater(batches, make_step(optimizer, score_of(model)));
    Trainer trainer(updater, model, optimizer, {.epochs = 3, .silent = true});
    trainer.run();
    EXPECT_LT(trainer.value("train_loss"), 1.5);
    optimizer.check_state();
  });
}

TEST(PartIterator, NamesWhatIsWrong) {
  const auto error = [](const std::function<void(Communicator&)>& call) {
    return error_of<ValueError>([&] { comm::run_threads(2, call); });
  };
  expect_contains(error([](Communicator& comm) {
                    PartIterator(make_data(), 2 + comm.rank(), comm.device(),
                                 comm.shared_from_this());
                  }),
                  {"PartIterator: the batch size is 2 on rank 0, 3 on rank 1"});
  expect_contains(error([](Communicator& comm) {
                    PartIterator(create_empty_dataset(0), 2, comm.device(),
                                 comm.shared_from_this());
                  }),
                  {"the parts of all ranks are empty"});
  expect_contains(error_of<ValueError>([] { PartIterator(nullptr, 2, cpu(0), nullptr); }),
                  {"no part was given"});
}

}  // namespace
}  // namespace catena::training
