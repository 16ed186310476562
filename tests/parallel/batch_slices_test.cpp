// Slices of a batch: equal bits on any number of ranks.
#include "catena/parallel/batch_slices.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "catena/array/reduction.h"
#include "catena/core/config.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/parallel/persistents.h"
#include "catena/parallel/sync_batch_normalization.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "parallel/sliced_training.h"
#include "parallel/tree_reduction.h"
#include "rank_results.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

namespace F = catena::functions;
using namespace catena::testing;  // NOLINT: the networks of these tests

comm::ThreadsOptions on_gpu(int ranks) {
  comm::ThreadsOptions options;
  options.devices = std::vector<Device>(size_t(ranks), cuda_device(0));
  return options;
}

// What rank 0 has after a run on so many threads.
struct Trained {
  Bits parameters, persistents;
  bool operator==(const Trained&) const = default;
};

template <class Model, class... Arguments>
Trained trained(int ranks, const SlicedRun& run, const comm::ThreadsOptions& options = {},
                Dtype dtype = dtype::float32, Arguments... arguments) {
  Trained result;
  comm::run_threads(
      ranks,
      [&](Communicator& comm) {
        Model model(arguments...);
        train_slices(comm, model, run, dtype);
        if (comm.rank() == 0) result = {bits_of(model), bits_of_persistents(model)};
      },
      options);
  return result;
}

// Names of what differs.
std::string differences(const Trained& a, const Trained& b) {
  std::string names;
  for (const auto& [name, bits] : a.parameters)
    if (b.parameters.at(name) != bits) names += " " + name;
  for (const auto& [name, bits] : a.persistents)
    if (b.persistents.at(name) != bits) names += " " + name;
  return names;
}

// Equal bits -------------------------------------------------------------------------------------

TEST(BatchSlices, GiveDenseNetworksOneResultOnAnyNumberOfRanks) {
  const DeterministicScope scope;
  for (const int64_t batch : {40, 37, 5}) {  // equal slices, uneven ones, some without samples
    const SlicedRun run{.batch = batch};
    const Trained one = trained<WideNet>(1, run, {}, dtype::float32, dtype::float32, 0.4);
    for (const int ranks : {2, 4, 8})
      EXPECT_EQ(
          differences(trained<WideNet>(ranks, run, {}, dtype::float32, dtype::float32, 0.4), one),
          "")
          << ranks << " ranks, batch " << batch;
  }
}

TEST(BatchSlices, GiveConvolutionsAndNormalizationOneResult) {
  const DeterministicScope scope;
  for (const int64_t batch : {40, 37}) {
    const SlicedRun run{.batch = batch};
    const Trained one = trained<ConvolutionNet>(1, run);
    for (const int ranks : {2, 4, 8})
      EXPECT_EQ(differences(trained<ConvolutionNet>(ranks, run), one), "")
          << ranks << " ranks, batch " << batch;
  }
}

TEST(BatchSlices, DoNotDependOnShardingBucketsOrThreads) {
  const DeterministicScope scope;
  const SlicedRun plain{.batch = 37, .clip = 0.05};
  const Trained one = trained<WideNet>(1, plain);
  SlicedRun sharded = plain;
  sharded.sharding = Sharding::kStates;
  const Trained sharded_one = trained<WideNet>(1, sharded);
  const Trained both_one = trained<WideNet>(
      1, {.batch = 37, .sharding = Sharding::kStates, .clip = 0.05, .bucket_bytes = 1 << 12});
  for (const int ranks : {1, 2, 4, 8}) {
    EXPECT_EQ(differences(trained<WideNet>(ranks, sharded), sharded_one), "") << ranks;
    SlicedRun ahead = sharded;
    ahead.gather_ahead = true;
    EXPECT_EQ(differences(trained<WideNet>(ranks, ahead), sharded_one), "") << ranks;
    SlicedRun buckets = plain;
    buckets.bucket_bytes = 1 << 12;
    EXPECT_EQ(differences(trained<WideNet>(ranks, buckets), one), "") << ranks;
    SlicedRun both = buckets;
    both.sharding = Sharding::kStates;
    EXPECT_EQ(differences(trained<WideNet>(ranks, both), both_one), "") << ranks;
    // Norms are sums over arenas, which sharding cuts; the rest does not depend on it.
    SlicedRun unclipped = sharded;
    unclipped.clip = 0;
    EXPECT_EQ(differences(trained<WideNet>(ranks, unclipped),
                          trained<WideNet>(1, SlicedRun{.batch = 37})),
              "")
        << ranks;
  }
  const int threads = cpu_threads();
  set_cpu_threads(threads == 1 ? 2 : 1);
  EXPECT_EQ(differences(trained<WideNet>(1, plain), one), "");
  const Trained other = trained<ConvolutionNet>(1, {});
  set_cpu_threads(threads);
  EXPECT_EQ(differences(trained<ConvolutionNet>(1, {}), other), "");
}

// oneDNN divides the sums of weight gradients over its threads; ranks have fewer threads each than
// one process.
TEST(BatchSlices, RunConvolutionsThatDoNotDependOnThreads) {
  const DeterministicScope scope;
  const int before = cpu_threads();
  const auto gradient_with = [&](int threads) {
    set_cpu_threads(threads);
    const Variable W(wave({32, 16, 3, 3}, 2, dtype::float32), Volatile::off);
    const Variable y = F::convolution_2d(
        Variable::constant(wave({6, 16, 24, 24}, 1, dtype::float32)), W, {.pad = 1});
    F::sum(y * y).backward();
    return bits_of(W.grad());
  };
  const std::string one = gradient_with(1);
  for (const int threads : {2, 3, 4}) EXPECT_TRUE(gradient_with(threads) == one) << threads;
  set_cpu_threads(before);
}

TEST(BatchSlices, SumGradientsOf16BitsInFloat32) {
  const DeterministicScope scope;
  for (const Dtype dtype : {dtype::float16, dtype::bfloat16, dtype::float64}) {
    const SlicedRun run{.batch = 19, .rule = "MomentumSGD"};
    const Trained one = trained<WideNet>(1, run, {}, dtype, dtype);
    for (const int ranks : {2, 8})
      EXPECT_EQ(differences(trained<WideNet>(ranks, run, {}, dtype, dtype), one), "")
          << dtype << ", " << ranks << " ranks";
  }
}

TEST(BatchSlices, GiveOneResultOnAGpuThatRanksShare) {
  CATENA_NEEDS_GPU();
  const DeterministicScope scope;
  const SlicedRun run{.batch = 37};
  const Trained dense = trained<WideNet>(1, run, on_gpu(1), dtype::float32, dtype::float32, 0.4);
  const Trained convolutions = trained<ConvolutionNet>(1, run, on_gpu(1));
  for (const int ranks : {2, 4, 8}) {
    EXPECT_EQ(differences(
                  trained<WideNet>(ranks, run, on_gpu(ranks), dtype::float32, dtype::float32, 0.4),
                  dense),
              "")
        << ranks;
    EXPECT_EQ(differences(trained<ConvolutionNet>(ranks, run, on_gpu(ranks)), convolutions), "")
        << ranks;
  }
}

TEST(BatchSlices, GiveOneResultOverNccl) {
  CATENA_NEEDS_GPUS(2);
  const DeterministicScope scope;
  const SlicedRun run{.batch = 37};
  const Trained one = trained<ConvolutionNet>(1, run, on_gpu(1));
  const int gpus = device_count(DeviceType::kCuda);
  for (int ranks = 2; ranks <= std::min(gpus, 8); ranks *= 2) {
    comm::ThreadsOptions options;
    options.implementation = "nccl";
    for (int r = 0; r < ranks; ++r) options.devices.push_back(cuda_device(r));
    EXPECT_EQ(differences(trained<ConvolutionNet>(ranks, run, options), one), "") << ranks;
  }
}

// Right gradients --------------------------------------------------------------------------------

// The mean over the batch, as of one process that runs it as a whole.
TEST(BatchSlices, AverageOverTheSamplesOfTheBatch) {
  const DeterministicScope scope;
  for (const int64_t batch : {16, 37, 3}) {
    Values whole, sliced;
    Net alone(dtype::float64);
    optimizers::Adam rule(0.01);
    rule.setup(alone);
    for (int step = 0; step < 5; ++step) {
      rule.zero_grads();
      loss_of(alone, batch_of(step, batch, dtype::float64)).backward();
      rule.update();
    }
    whole = values_of(alone);
    for (const int ranks : {1, 4}) {
      comm::run_threads(ranks, [&](Communicator& comm) {
        Net net(dtype::float64, comm.rank());
        auto optimizer = set_up(net, optimizers::Adam(0.01), comm, {.slices = 4});
        const auto [begin, end] = slice_bounds(batch, comm.rank(), comm.size());
        for (int step = 0; step < 5; ++step) {
          const Batch own = part(batch_of(step, batch, dtype::float64), begin, end, comm.device());
          optimizer.zero_grads();
          for (const auto& slice : optimizer.slices(end - begin, batch))
            loss_of(net, {slice(own.x), slice(own.t)}).backward();
          optimizer.update();
        }
        if (comm.rank() == 0) sliced = values_of(net);
      });
      expect_equal_training(sliced, whole, dtype::float64, message(ranks, " ranks"));
    }
  }
}

// One loop serves both.
TEST(BatchSlices, AreTheWholeBatchWithoutTheOption) {
  comm::run_threads(2, [](Communicator& comm) {
    Net net(dtype::float64);
    auto optimizer = set_up(net, optimizers::SGD(0.1), comm);
    EXPECT_EQ(optimizer.slice_count(), 0);
    int64_t rows = 0;
    for (const auto& slice : optimizer.slices(comm.rank() == 0 ? 3 : 0, 3)) {
      const Array x = zeros({3, 2}, {dtype::float32, comm.device()});
      EXPECT_EQ(slice(x).raw_data(), x.raw_data());
      EXPECT_EQ(slice.share(), 1);
      rows += slice.size();
    }
    EXPECT_EQ(rows, comm.rank() == 0 ? 3 : 0);
  });
}

TEST(BatchSlices, BoundsNest) {
  for (const int64_t samples : {0, 1, 5, 8, 37, 1000}) {
    for (int slices = 1; slices <= 64; slices *= 2) {
      EXPECT_EQ(slice_bounds(samples, 0, slices).begin, 0);
      EXPECT_EQ(slice_bounds(samples, slices - 1, slices).end, samples);
      for (int k = 0; k < slices; ++k) {
        const SliceBounds whole = slice_bounds(samples, k, slices),
                          left = slice_bounds(samples, 2 * k, 2 * slices),
                          right = slice_bounds(samples, 2 * k + 1, 2 * slices);
        EXPECT_EQ(whole.begin, left.begin);
        EXPECT_EQ(left.end, right.begin);
        EXPECT_EQ(whole.end, right.end);
        EXPECT_GE(whole.size(), samples / slices);
        EXPECT_LE(whole.size(), samples / slices + 1);
      }
    }
  }
  EXPECT_THROW(slice_bounds(4, 2, 2), ValueError);
  EXPECT_THROW(slice_bounds(-1, 0, 2), ValueError);
}

// Rows that begin elsewhere than a new array would are copied.
TEST(BatchSlices, RowsBeginLikeNewArrays) {
  const DeterministicScope scope;
  comm::run_threads(1, [](Communicator& comm) {
    Net net(dtype::float32);
    auto optimizer = set_up(net, optimizers::SGD(0.1), comm, {.slices = 4});
    optimizer.zero_grads();
    const Array x = wave({12, 5}, 1, dtype::float32).to(comm.device());
    int64_t next = 0;
    for (const auto& slice : optimizer.slices(12, 12)) {
      const Array rows = slice(x);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(rows.raw_data()) % 64, 0u);
      EXPECT_EQ(bits_of(rows), bits_of(x(Slice(next, next + 3)).copy()));
      EXPECT_EQ(slice.number(), next / 3);
      EXPECT_EQ(slice.share(), 0.25);
      next += 3;
      EXPECT_THROW(slice(x(Slice(0, 11))), ShapeError);
      loss_of(net, part(batch_of(0, 12, dtype::float32), 0, slice.size(), comm.device()))
          .backward();
    }
    EXPECT_EQ(next, 12);
    auto whole = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
    for (const auto& slice : whole.slices(11, 11)) {
      const Array rows = slice(x(Slice(1, 12)));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(rows.raw_data()) % 64, 0u);
    }
  });
}

// Trees ------------------------------------------------------------------------------------------

TEST(TreeReduction, HasTheBitsOfOneTreeOnAnyNumberOfRanks) {
  for (const int64_t size : {1, 7, 64, 5000, 100003}) {  // both ways, with and without padding
    const Array leaves = wave({8, size}, 3, dtype::float32);
    const std::string expected = bits_of(tree_sum(leaves.copy()) * 0.125);
    for (const int ranks : {1, 2, 4, 8}) {
      comm::run_threads(ranks, [&](Communicator& comm) {
        const int64_t own = 8 / ranks;
        const Array rows =
            leaves(Slice(comm.rank() * own, (comm.rank() + 1) * own)).to(comm.device()).copy();
        const Array sum = tree_sum(rows).copy();
        tree_all_reduce(comm, sum, 0.125);
        EXPECT_EQ(bits_of(sum), expected) << size << " elements, " << ranks << " ranks";
      });
    }
  }
  const Array leaves = wave({8, 5000}, 3, dtype::float32);
  EXPECT_NE(bits_of(tree_sum(leaves.copy())), bits_of(sum(leaves, 0)));
}

// Random numbers ---------------------------------------------------------------------------------

using Draws = std::map<std::pair<int, int>, std::string>;  // by step and slice

Draws draws_on(int ranks, const comm::ThreadsOptions& options = {}) {
  Draws all;
  std::mutex mutex;
  comm::run_threads(
      ranks,
      [&](Communicator& comm) {
        random::default_state(comm.device()).seed(3 + uint64_t(comm.device().index()));
        Net net(dtype::float32);
        auto optimizer = set_up(net, optimizers::SGD(0.1), comm, {.slices = 8});
        const auto [begin, end] = slice_bounds(8, comm.rank(), comm.size());
        for (int step = 0; step < 3; ++step) {
          optimizer.zero_grads();
          for (const auto& slice : optimizer.slices(end - begin, 8)) {
            random::uniform({slice.number() + 1}, 0, 1.0, {comm.device()});  // more in some
            const Array drawn = random::uniform({4}, 0, 1.0, {comm.device()});
            const Batch rows = part(batch_of(0, 8, dtype::float32), 0, slice.size(), comm.device());
            loss_of(net, rows).backward();
            const std::lock_guard lock(mutex);
            all[{step, slice.number()}] = bits_of(drawn);
          }
          optimizer.update();
        }
      },
      options);
  return all;
}

TEST(BatchSlices, DrawTheNumbersOfStepAndSlice) {
  const DeterministicScope scope;
  const Draws one = draws_on(1);
  ASSERT_EQ(one.size(), 24u);
  std::set<std::string> distinct;
  for (const auto& [place, bits] : one) distinct.insert(bits);
  EXPECT_EQ(distinct.size(), one.size());
  for (const int ranks : {2, 4, 8}) EXPECT_TRUE(draws_on(ranks) == one) << ranks;
  comm::ThreadsOptions shared;  // one generator for all ranks
  shared.devices = std::vector<Device>(4, cpu(0));
  EXPECT_TRUE(draws_on(4, shared) == one);
}

TEST(BatchSlices, NameRanksWhoseGeneratorsHaveComeApart) {
  const DeterministicScope scope;
  const std::string text = error_of<ValueError>([] {
    comm::run_threads(2, [](Communicator& comm) {
      Net net(dtype::float32);
      auto optimizer = set_up(net, optimizers::SGD(0.1), comm, {.slices = 2});
      if (comm.rank() == 1) random::uniform({4}, 0, 1.0, {comm.device()});
      optimizer.zero_grads();
      for (const auto& slice : optimizer.slices(2, 4))
        loss_of(net, part(batch_of(0, 2, dtype::float32), 0, slice.size(), comm.device()))
            .backward();
      optimizer.update();
    });
  });
  expect_contains(text, {"generators of the ranks have come apart: the position is ",
                         " on rank 0, ", "RandomState"});
}

// Persistent arrays ------------------------------------------------------------------------------

struct Normalized : FunctionSet {
  F::BatchNormalization bn{6};
  F::Linear l{layer(6, kClasses, dtype::float32, 1)};
  CATENA_FUNCTIONS(bn, l)
  Variable operator()(const Variable& x) { return l(bn(x)); }
};

// As of ranks that run a slice each.
TEST(BatchSlices, KeepRunningMeansLikeRanks) {
  const DeterministicScope scope;
  const auto run = [](int ranks, int slices) {
    const auto means = of_ranks(ranks, [&](Communicator& comm) {
      Normalized net;
      auto optimizer = set_up(net, optimizers::SGD(0.1), comm, {.slices = slices});
      const auto [begin, end] = slice_bounds(19, comm.rank(), comm.size());
      for (int step = 0; step < 6; ++step) {
        optimizer.zero_grads();
        const Batch own = part(batch_of(step, 19, dtype::float32), begin, end, comm.device());
        for (const auto& slice : optimizer.slices(end - begin, 19))
          F::softmax_cross_entropy(net(Variable::constant(slice(own.x))), slice(own.t)).backward();
        optimizer.update();
        if (step == 2) average_persistents(net, comm);
      }
      average_persistents(net, comm);
      return net.bn.avg_mean.data().to_vector<double>();
    });
    for (const auto& one : means) EXPECT_EQ(one, means[0]);
    return means[0];
  };
  const std::vector<double> expected = run(8, 0);
  const std::vector<double> one = run(1, 8);
  ASSERT_EQ(one.size(), expected.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], expected[i], 1e-6);
  EXPECT_EQ(run(2, 8), one);
  EXPECT_EQ(run(8, 8), one);
}

// Who writes the model's array, writes that of every slice.
TEST(BatchSlices, FollowWritesBetweenSteps) {
  const DeterministicScope scope;
  comm::run_threads(2, [](Communicator& comm) {
    Normalized net;
    auto optimizer = set_up(net, optimizers::SGD(0.1), comm, {.slices = 8});
    const Batch own = part(batch_of(0, 16, dtype::float32), 0, 8, comm.device());
    const auto step = [&] {
      optimizer.zero_grads();
      for (const auto& slice : optimizer.slices(8, 16))
        F::softmax_cross_entropy(net(Variable::constant(slice(own.x))), slice(own.t)).backward();
      optimizer.update();
    };
    step();
    net.bn.avg_mean.data().fill(1000);
    step();
    optimizer.average_persistents();
    for (const double mean : net.bn.avg_mean.data().to_vector<double>()) {
      EXPECT_GT(mean, 890);  // 0.9 of it, in every slice
      EXPECT_LT(mean, 910);
    }
  });
}

// Errors -----------------------------------------------------------------------------------------

TEST(BatchSlices, RefuseNumbersThatMakeNoTree) {
  const DeterministicScope scope;
  comm::run_threads(3, [](Communicator& comm) {
    const auto make = [&](int slices) {
      return error_of<ValueError>(
          [&] { create_multi_node_optimizer(optimizers::SGD(0.1), comm, {.slices = slices}); });
    };
    expect_contains(make(8), {"8 slices cannot be divided over 3 ranks", "1, 2, 4"});
    expect_contains(make(6), {".slices is 6", "power of two"});
    expect_contains(make(-8), {".slices is -8", "power of two"});
  });
  comm::run_threads(4, [](Communicator& comm) {
    expect_contains(error_of<ValueError>([&] {
                      create_multi_node_optimizer(optimizers::SGD(0.1), comm, {.slices = 2});
                    }),
                    {"2 slices cannot be divided over 4 ranks"});
  });
}

TEST(BatchSlices, KeepGradientsWholeAndWide) {
  const DeterministicScope scope;
  comm::run_threads(2, [](Communicator& comm) {
    for (const BucketOptions& options :
         {BucketOptions{.sharding = Sharding::kGradients, .slices = 2},
          BucketOptions{.sharding = Sharding::kParameters, .slices = 2},
          BucketOptions{.slices = 2, .reduce_dtype = dtype::bfloat16}})
      expect_contains(error_of<ValueError>([&] {
                        create_multi_node_optimizer(optimizers::SGD(0.1), comm, options);
                      }),
                      {"slices keep gradients whole", "kStates", "reduce_dtype"});
  });
}

TEST(BatchSlices, NeedDeterministicKernels) {
  const DeterministicScope scope(false);
  comm::run_threads(2, [](Communicator& comm) {
    Net net(dtype::float32);
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm, {.slices = 2});
    expect_contains(error_of<ValueError>([&] { optimizer.setup(net); }),
                    {"config().deterministic", "CATENA_DETERMINISTIC=1"});
  });
}

TEST(BatchSlices, RefuseLayersWhoseRanksMeet) {
  const DeterministicScope scope;
  comm::run_threads(2, [](Communicator& comm) {
    Normalized net;
    net.to(comm.device());
    synchronize_normalization(net, comm.shared_from_this());
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm, {.slices = 2});
    expect_contains(error_of<ValueError>([&] { optimizer.setup(net); }),
                    {"SyncBatchNormalization"});
  });
}

// A rank with a model and an optimizer of 4 slices.
struct OneOfTwo {
  Net net{dtype::float32};
  MultiNodeOptimizer optimizer;
  explicit OneOfTwo(Communicator& comm)
      : optimizer(create_multi_node_optimizer(optimizers::SGD(0.1), comm, {.slices = 4})) {
    net.to(comm.device());
    optimizer.setup(net);
  }
  void backward(int64_t samples, Device device) {
    loss_of(net, part(batch_of(0, 8, dtype::float32), 0, samples, device)).backward();
  }
};

TEST(BatchSlices, NameOtherSharesAndGradientsThatAreLeft) {
  const DeterministicScope scope;
  comm::run_threads(2, [](Communicator& comm) {
    OneOfTwo one(comm);
    one.optimizer.zero_grads();
    expect_contains(error_of<ValueError>([&] { (void)one.optimizer.slices(4, 3); }),
                    {"n_local <= n_global"});
    expect_contains(error_of<ValueError>([&] { (void)one.optimizer.slices(3, 8).begin(); }),
                    {"has 3 samples of a batch of 8", "RankOf"});
    one.optimizer.zero_grads();
    {
      const NoSync local = one.optimizer.no_sync();
      one.backward(2, comm.device());
    }
    expect_contains(error_of<GradientError>([&] { (void)one.optimizer.slices(4, 8).begin(); }),
                    {"zero_grads() first"});
  });
}

TEST(BatchSlices, RefuseWeightsBesideTheLoop) {
  const DeterministicScope scope;
  comm::run_threads(2, [](Communicator& comm) {
    OneOfTwo one(comm);
    expect_contains(error_of<ValueError>([&] { one.optimizer.set_batch_weight(4, 8); }),
                    {".slices = 4", "call slices(n_local, n_global)"});
  });
}

TEST(BatchSlices, NameAnUpdateWithoutTheLoop) {
  const DeterministicScope scope;
  comm::run_threads(2, [](Communicator& comm) {
    OneOfTwo one(comm);
    one.optimizer.zero_grads();
    expect_contains(error_of<GradientError>([&] { one.optimizer.update(); }),
                    {"no slices were run", "optimizer.slices(n_local, n_global)"});
    one.optimizer.zero_grads();
    for (const auto& slice : one.optimizer.slices(4, 8)) {
      one.backward(slice.size(), comm.device());
      break;
    }
    const int first = 2 * comm.rank();
    expect_contains(
        error_of<GradientError>([&] { one.optimizer.update(); }),
        {message("was left in slice ", first, " of this rank's slices ", first, " to ", first + 1)
             .c_str(),
         "by break, return or an exception", "call zero_grads() and run the loop"});
    one.optimizer.zero_grads();  // and the next step is right again
    for (const auto& slice : one.optimizer.slices(4, 8)) one.backward(slice.size(), comm.device());
    one.optimizer.update();
    one.optimizer.check_state();
    // In the last slice too, whose persistent arrays would be lost.
    one.optimizer.zero_grads();
    for (const auto& slice : one.optimizer.slices(4, 8)) {
      one.backward(slice.size(), comm.device());
      if (slice.end() == 4) break;
    }
    expect_contains(error_of<GradientError>([&] { one.optimizer.update(); }), {"was left in"});
  });
}

TEST(BatchSlices, NameTheSliceWithoutAGradient) {
  const DeterministicScope scope;
  comm::run_threads(1, [](Communicator& comm) {
    OneOfTwo one(comm);
    for (const int without : {1, 3}) {
      one.optimizer.zero_grads();
      expect_contains(error_of<GradientError>([&] {
                        for (const auto& slice : one.optimizer.slices(8, 8))
                          if (slice.number() != without)
                            one.backward(slice.size(), comm.device());
                          else
                            (void)slice.size();
                      }),
                      {message("slice ", without, " of 4 has ended without a gradient").c_str(),
                       "call backward() in the body"});
    }
    // Slices without samples have none, and a loss times 0 leaves one out.
    one.optimizer.zero_grads();
    for (const auto& slice : one.optimizer.slices(2, 2)) {
      const Batch rows = part(batch_of(0, 8, dtype::float32), 0, slice.size(), comm.device());
      (loss_of(one.net, rows) * 0.0).backward();
    }
    one.optimizer.update();
  });
}

TEST(BatchSlices, NameABodyThatDoesNotUseTheSlice) {
  const DeterministicScope scope;
  comm::run_threads(1, [](Communicator& comm) {
    OneOfTwo one(comm);
    one.optimizer.zero_grads();
    expect_contains(error_of<ValueError>([&] {
                      for (const auto& slice : one.optimizer.slices(8, 8)) {
                        (void)slice.number();
                        one.backward(8, comm.device());
                      }
                    }),
                    {"did not use slice 0, which has 2 of the 8 samples", "slice(x)"});
    one.optimizer.zero_grads();
    expect_contains(error_of<ValueError>([&] {
                      for (const auto& slice : one.optimizer.slices(8, 8)) {
                        if (slice.number() == 0) (void)slice(zeros({8, 1}, dtype::float32));
                        one.backward(8, comm.device());
                      }
                    }),
                    {"did not use slice 1"});
    one.optimizer.zero_grads();
    for (const auto& slice : one.optimizer.slices(8, 8)) {
      const BatchSlice copy = slice;
      one.backward(copy.size(), comm.device());
    }
    one.optimizer.update();
  });
}

}  // namespace
}  // namespace catena::parallel
