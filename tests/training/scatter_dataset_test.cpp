// Data sets over ranks: parts that are disjoint and complete, and samples that are sent.
#include "catena/training/scatter_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"
#include "catena/datasets/prefetch.h"
#include "catena/testing.h"
#include "error_text.h"
#include "rank_results.h"

namespace catena::training {
namespace {

using datasets::DatasetPtr;

DatasetPtr numbers(int64_t n) {
  return std::make_shared<datasets::TupleDataset>(
      Arrays{arange(n, dtype::float32).reshape({n, 1}), arange(n, dtype::int32)});
}
// Sample i has i + 1 elements.
DatasetPtr ragged(int64_t n) {
  std::vector<Arrays> samples;
  for (int64_t i = 0; i < n; ++i)
    samples.push_back({full({i + 1}, double(i)), full({}, double(i))});
  return std::make_shared<datasets::ListDataset>(samples);
}

std::vector<int64_t> labels_of(const DatasetPtr& data) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < data->size(); ++i)
    labels.push_back(data->sample(i)[1].astype(Dtype::kInt64).item<int64_t>());
  return labels;
}

// The labels of all ranks' parts.
std::vector<std::vector<int64_t>> scattered(int ranks, const std::function<DatasetPtr(int)>& data,
                                            const ScatterOptions& options) {
  return testing::of_ranks(ranks, [&](Communicator& comm) {
    const DatasetPtr part = scatter_dataset(data(comm.rank()), comm.shared_from_this(), options);
    return labels_of(part);
  });
}

void expect_disjoint_and_complete(const std::vector<std::vector<int64_t>>& parts, int64_t n) {
  std::vector<int64_t> all;
  size_t shortest = SIZE_MAX, longest = 0;
  for (const auto& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
    shortest = std::min(shortest, part.size());
    longest = std::max(longest, part.size());
  }
  EXPECT_LE(longest - shortest, 1u);
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(static_cast<size_t>(n));
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(ScatterDataset, DividesWhatAllRanksHave) {
  for (const int ranks : {1, 2, 3, 4})
    for (const int64_t n : {0, 1, 3, 10, 23})
      for (const bool shuffle : {false, true})
        for (const bool rows : {true, false}) {
          const DatasetPtr data = rows ? numbers(n) : ragged(n);
          const auto parts =
              scattered(ranks, [&](int) { return data; }, {.shuffle = shuffle, .seed = 5});
          expect_disjoint_and_complete(parts, n);
          if (!shuffle && n > 0) {
            EXPECT_EQ(parts[0][0], 0);
          }
        }
}

TEST(ScatterDataset, ShufflesByTheSeed) {
  const auto shuffled = [](int ranks, uint64_t seed) {
    std::vector<int64_t> all;
    for (const auto& part :
         scattered(ranks, [](int) { return numbers(23); }, {.shuffle = true, .seed = seed}))
      all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  const std::vector<int64_t> order = shuffled(3, 5);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(shuffled(2, 5), order) << "one order for any number of ranks";
  EXPECT_NE(shuffled(3, 6), order);
}

TEST(ScatterDataset, SendsTheSamplesThatOnlyTheRootHas) {
  for (const int ranks : {2, 3, 4})
    for (const int root : {0, ranks - 1})
      for (const int64_t n : {0, 2, 11})
        for (const bool rows : {true, false}) {
          const DatasetPtr data = rows ? numbers(n) : ragged(n);
          const auto of_root = [&](int rank) { return rank == root ? data : nullptr; };
          const ScatterOptions options{.shuffle = true, .seed = 2, .root = root};
          const auto parts = scattered(ranks, of_root, options);
          expect_disjoint_and_complete(parts, n);
          EXPECT_EQ(parts, scattered(
                               ranks, [&](int) { return data; }, options))
              << "as where all have it";
        }
}

TEST(ScatterDataset, SentSamplesAreTheRoots) {
  comm::run_threads(2, [](Communicator& comm) {
    const bool root = comm.rank() == 0;
    const DatasetPtr rows = scatter_dataset(root ? numbers(5) : nullptr, comm.shared_from_this());
    const Arrays all = rows->all();
    EXPECT_EQ(all[0].dtype(), Dtype::kFloat32);
    EXPECT_EQ(all[0].shape(), (Shape{root ? 3 : 2, 1}));
    EXPECT_EQ(all[0](0, 0).item<double>(), root ? 0 : 3);
    const DatasetPtr lists = scatter_dataset(root ? ragged(5) : nullptr, comm.shared_from_this());
    EXPECT_FALSE(lists->has_columns());
    EXPECT_EQ(lists->sample(1)[0].shape(), Shape{root ? 2 : 5});
  });
}

TEST(ScatterDataset, EqualLengthsRepeatSamples) {
  for (const int ranks : {2, 3, 4})
    for (const int64_t n : {1, 5, 11}) {
      const auto parts = scattered(ranks, [&](int) { return numbers(n); }, {.equal_length = true});
      std::set<int64_t> seen;
      for (const auto& part : parts) {
        EXPECT_EQ(int64_t(part.size()), (n + ranks - 1) / ranks);
        seen.insert(part.begin(), part.end());
      }
      EXPECT_EQ(int64_t(seen.size()), n) << "complete";
    }
}

TEST(ScatterDataset, IndicesWithoutADataSet) {
  comm::run_threads(3, [](Communicator& comm) {
    const auto mine = scatter_index(7, comm.shared_from_this());
    const std::vector<std::vector<int64_t>> expected{{0, 1, 2}, {3, 4}, {5, 6}};
    EXPECT_EQ(mine, expected[size_t(comm.rank())]);
    EXPECT_EQ(scatter_index(2, nullptr), (std::vector<int64_t>{0, 1}));
  });
}

TEST(ScatterDataset, BroadcastsAndEmpties) {
  comm::run_threads(3, [](Communicator& comm) {
    for (const bool rows : {true, false}) {
      const DatasetPtr own = comm.rank() == 1 ? (rows ? numbers(4) : ragged(4)) : nullptr;
      const DatasetPtr all = broadcast_dataset(own, comm.shared_from_this(), 1);
      EXPECT_EQ(labels_of(all), (std::vector<int64_t>{0, 1, 2, 3}));
      EXPECT_EQ(all->has_columns(), rows);
    }
  });
  const DatasetPtr empty = create_empty_dataset(numbers(5));
  datasets::PrefetchIterator batches(empty, datasets::SerialIterator(5, 2), cpu(0));
  int64_t samples = 0;
  while (const auto batch = batches.next()) {
    EXPECT_TRUE(batch->arrays.empty());
    samples += batch->size();
  }
  EXPECT_EQ(samples, 5);
}

TEST(ScatterDataset, NamesWhatRanksDisagreeIn) {
  const auto error = [](const std::function<void(Communicator&)>& call) {
    return error_of<ValueError>([&] { comm::run_threads(2, call); });
  };
  expect_contains(error([](Communicator& comm) {
                    scatter_dataset(numbers(5 + comm.rank()), comm.shared_from_this());
                  }),
                  {"scatter_dataset", "5 on rank 0, 6 on rank 1"});
  expect_contains(error([](Communicator& comm) {
                    scatter_dataset(comm.rank() == 0 ? nullptr : numbers(5),
                                    comm.shared_from_this());
                  }),
                  {"rank 0, the root, has no data set"});
  expect_contains(error([](Communicator& comm) {
                    scatter_dataset(numbers(5), comm.shared_from_this(),
                                    {.seed = uint64_t(comm.rank())});
                  }),
                  {".seed is 0 on rank 0, 1 on rank 1; give all ranks the same options"});
  expect_contains(
      error([](Communicator& comm) { scatter_index(5, comm.shared_from_this(), {.root = 2}); }),
      {"root 2 is not a rank"});
  expect_contains(
      error([](Communicator& comm) { broadcast_dataset(nullptr, comm.shared_from_this()); }),
      {"broadcast_dataset: rank 0, the root, has no data set"});
  expect_contains(error_of<ValueError>([] { scatter_dataset(nullptr, nullptr); }),
                  {"no data set was given"});
}

}  // namespace
}  // namespace catena::training
