// Batch normalization over ranks against one process that has the whole batch.
#include "catena/parallel/sync_batch_normalization.h"

#include <numeric>

#include "catena/array/manipulation.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/core/graph.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/recompute.h"
#include "catena/testing.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "parallel/network.h"
#include "rank_results.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // the network

// A batch that is cut over ranks: shares[r] samples of rank r.
struct Case {
  const char* name;
  std::vector<int64_t> shares;
  Shape sample;  // without the samples
  Dtype dtype = Dtype::kFloat64;
  bool last = false;  // channels last in memory
  bool relu = false, residual = false;
  LossOverRanks loss = LossOverRanks::kMeanOverSamples;
  double offset = 0;
  double tolerance = 1e-11;

  int64_t samples() const { return std::accumulate(shares.begin(), shares.end(), int64_t(0)); }
  int64_t begin(int rank) const {
    return std::accumulate(shares.begin(), shares.begin() + rank, int64_t(0));
  }
  // Of a rank in the loss of the job.
  double weight(int rank) const {
    return loss == LossOverRanks::kSum ? 1 : double(shares[size_t(rank)]) / double(samples());
  }
};

std::vector<Case> cases() {
  constexpr Dtype k32 = Dtype::kFloat32, k64 = Dtype::kFloat64;
  constexpr LossOverRanks kSum = LossOverRanks::kSum;
  return {
      {"two_equal", {4, 4}, {3, 2, 5}},
      {"uneven", {5, 1, 3}, {3, 4}},
      {"uneven_sum", {5, 1, 3}, {3, 4}, k64, false, false, false, kSum},
      {"an_empty_rank", {2, 0, 4}, {3, 2, 2}},
      {"an_empty_rank_sum", {0, 3}, {3, 2, 2}, k64, false, false, false, kSum},
      {"one_sample_a_rank", {1, 1, 0, 1}, {5}},
      {"channels_last", {3, 2}, {4, 3, 2}, k64, true},
      {"relu", {3, 4, 2}, {3, 2, 2}, k64, false, true},
      {"relu_last", {3, 4}, {8, 2, 2}, k64, true, true},
      {"add_relu", {3, 0, 2, 4}, {3, 2, 2}, k64, false, true, true},
      {"add_relu_last_float", {3, 2}, {8, 3, 3}, k32, true, true, true, {}, 0, 1e-5},
      {"float", {7, 5}, {4, 6}, k32, false, false, false, {}, 0, 1e-5},
      {"bfloat", {7, 5}, {8, 6}, Dtype::kBFloat16, false, true, false, {}, 0, 2e-2},
      {"large_mean", {20, 3, 17}, {3, 30}, k32, false, false, false, {}, 1e4, 1e-5},
  };
}

// What a step leaves, on cpu:0.
struct Outcome {
  Array y, gx, g_residual, g_gamma, g_beta, mean, var;
};

Array batch(const Case& c, uint64_t seed, double offset = 0, double scale = 1) {
  Shape shape = c.sample;
  shape.insert(shape.begin(), c.samples());
  return random_array(shape, offset - scale, offset + scale, c.dtype, cpu(0), seed);
}

// This rank's samples, in the memory order of the case.
Array part_of(const Case& c, const Array& whole, int rank, Device device) {
  const int64_t begin = c.begin(rank);
  const Array part = whole(Slice(begin, begin + c.shares[size_t(rank)])).to(device);
  return c.last ? F::channels_last(part) : part.copy();
}

F::BatchNormalizationOptions options_of(const Case& c) {
  const int64_t channels = c.sample[0];
  const Dtype dtype = c.dtype == Dtype::kFloat64 ? c.dtype : Dtype::kFloat32;
  return {.decay = 0.75,
          .dtype = dtype,
          .initial_gamma = random_array({channels}, 0.5, 2, dtype, cpu(0), 5),
          .initial_beta = random_array({channels}, -1, 1, dtype, cpu(0), 6)};
}

// Two steps, so that averages move twice; the results are those of the second.
Outcome run(const Case& c, const F::BatchNormalization& bn, int rank, Device device) {
  Outcome result;
  for (uint64_t step = 0; step < 2; ++step) {
    const double scale = c.offset == 0 ? 1 : 0.02;
    const auto mine = [&](const Array& whole) { return part_of(c, whole, rank, device); };
    const Variable x(mine(batch(c, 10 + step, c.offset, scale))), r(mine(batch(c, 20 + step)));
    bn.gamma.zero_grad();
    bn.beta.zero_grad();
    const Variable y = c.residual ? bn.add_relu(x, r) : c.relu ? bn.relu(x) : bn(x);
    // Each rank's loss is the mean over its samples where the job's is.
    const double weight = std::max(c.weight(rank), 1e-9);
    y.set_grad(mine((batch(c, 30 + step) / weight).astype(c.dtype)));
    y.backward();
    EXPECT_EQ(x.grad().shape(), x.shape());
    const auto counted = [&](const Array& g) {
      return g.astype(Dtype::kFloat64).to(cpu(0)) * c.weight(rank);
    };
    result = {y.data().to(cpu(0)),
              counted(x.grad()),
              c.residual ? counted(r.grad()) : Array(),
              counted(bn.gamma.grad()),
              counted(bn.beta.grad()),
              bn.avg_mean.data().copy().to(cpu(0)),
              bn.avg_var.data().copy().to(cpu(0))};
  }
  return result;
}

void expect_near(const Array& got, const Array& expected, double share, const std::string& what) {
  const Array wide = expected.astype(Dtype::kFloat64);
  const double largest = std::max(1e-3, amax(absolute(wide)).item<double>());
  EXPECT_EQ(testing::difference(got.astype(Dtype::kFloat64), wide, share * largest, 0), "") << what;
}

void expect_whole(const Case& c, const Outcome& alone, const std::vector<Outcome>& ranks) {
  Arrays y, gx, g_residual;
  Array g_gamma = zeros_like(alone.g_gamma), g_beta = zeros_like(alone.g_beta);
  for (const Outcome& one : ranks) {
    y.push_back(one.y);
    gx.push_back(one.gx);
    if (c.residual) g_residual.push_back(one.g_residual);
    g_gamma += one.g_gamma;
    g_beta += one.g_beta;
    EXPECT_EQ(testing::difference(one.mean, ranks[0].mean), "") << "bits of the averages";
    EXPECT_EQ(testing::difference(one.var, ranks[0].var), "") << "bits of the averages";
  }
  expect_near(concatenate(y), alone.y, c.tolerance, "y");
  expect_near(concatenate(gx), alone.gx, 10 * c.tolerance, "gx");
  if (c.residual) expect_near(concatenate(g_residual), alone.g_residual, c.tolerance, "g_residual");
  expect_near(g_gamma, alone.g_gamma, 10 * c.tolerance, "g_gamma");
  expect_near(g_beta, alone.g_beta, 10 * c.tolerance, "g_beta");
  expect_near(ranks[0].mean, alone.mean, 1e-6, "mean");
  expect_near(ranks[0].var, alone.var, c.dtype == Dtype::kFloat64 ? 1e-12 : 1e-5, "var");
}

Outcome run_alone(const Case& c) {
  Case whole = c;
  whole.shares = {c.samples()};
  whole.loss = LossOverRanks::kSum;
  const DeviceScope scope(cpu(0));
  return run(whole, F::BatchNormalization(c.sample[0], options_of(c)), 0, cpu(0));
}

void compare_over_threads(const Case& c, const comm::ThreadsOptions& options = {}) {
  SCOPED_TRACE(c.name);
  std::vector<Outcome> ranks(c.shares.size());
  comm::run_threads(
      int(c.shares.size()),
      [&](Communicator& comm) {
        SyncBatchNormalization bn(c.sample[0], comm.shared_from_this(), options_of(c), c.loss);
        bn.to(comm.device());
        ranks[size_t(comm.rank())] = run(c, bn, comm.rank(), comm.device());
      },
      options);
  expect_whole(c, run_alone(c), ranks);
}

TEST(SyncBatchNormalization, EqualsOneProcessWithTheWholeBatch) {
  for (const Case& c : cases()) compare_over_threads(c);
}

TEST(SyncBatchNormalization, EqualsItOnAGpuThatRanksShare) {
  CATENA_NEEDS_GPU();
  for (const Case& c : cases())
    compare_over_threads(c, {.devices = std::vector<Device>(c.shares.size(), cuda_device(0))});
}

TEST(SyncBatchNormalization, WithoutRanksIsThePlainLayer) {
  const Case c = cases()[0];
  Case whole = c;
  whole.shares = {c.samples()};
  whole.loss = LossOverRanks::kSum;
  const DeviceScope scope(cpu(0));
  const Outcome plain = run_alone(c);
  const auto expect_same = [&](const CommunicatorPtr& comm) {
    SyncBatchNormalization bn(c.sample[0], comm, options_of(c));
    const Outcome got = run(whole, bn, 0, cpu(0));
    for (const auto& [a, b] :
         {std::pair{got.y, plain.y}, std::pair{got.gx, plain.gx},
          std::pair{got.g_gamma, plain.g_gamma}, std::pair{got.var, plain.var}})
      EXPECT_EQ(testing::difference(a, b), "");
  };
  expect_same(nullptr);
  comm::run_threads(1, [&](Communicator& comm) { expect_same(comm.shared_from_this()); });
}

// A gradient of a sum over a function of the gradients, and where it belongs to.
struct Second {
  Array gx, g_gamma;
};
Second second_order(const Case& c, const F::BatchNormalization& bn, int rank, Device device) {
  const double weight = std::max(c.weight(rank), 1e-9);
  const Array gy = part_of(c, batch(c, 31) / weight, rank, device),
              v = part_of(c, batch(c, 32), rank, device);
  const Variable x(part_of(c, batch(c, 11), rank, device));
  bn.gamma.zero_grad();
  F::sum(bn(x) * Variable::constant(gy)).backward({.create_graph = true});
  const Variable first = x.grad_variable();
  x.set_grad(Array());
  bn.gamma.zero_grad();
  F::sum(F::square(first) * Variable::constant(v * c.weight(rank))).backward();
  return {x.grad().to(cpu(0)) * c.weight(rank), bn.gamma.grad().to(cpu(0)) * c.weight(rank)};
}

TEST(SyncBatchNormalization, HasASecondOrder) {
  for (const Case& c : cases()) {
    if (c.dtype != Dtype::kFloat64 || c.relu) continue;
    SCOPED_TRACE(c.name);
    Case whole = c;
    whole.shares = {c.samples()};
    whole.loss = LossOverRanks::kSum;
    const DeviceScope scope(cpu(0));
    const Second alone =
        second_order(whole, F::BatchNormalization(c.sample[0], options_of(c)), 0, cpu(0));
    const auto ranks = testing::of_ranks(int(c.shares.size()), [&](Communicator& comm) {
      SyncBatchNormalization bn(c.sample[0], comm.shared_from_this(), options_of(c), c.loss);
      bn.to(comm.device());
      return second_order(c, bn, comm.rank(), comm.device());
    });
    Arrays gx;
    Array g_gamma = zeros_like(alone.g_gamma);
    for (const Second& one : ranks) {
      gx.push_back(one.gx);
      g_gamma += one.g_gamma;
    }
    expect_near(concatenate(gx), alone.gx, 1e-10, "second gradient of x");
    expect_near(g_gamma, alone.g_gamma, 1e-10, "second gradient of gamma");
  }
}

// The statistics travel again in backward, and the averages move once.
TEST(SyncBatchNormalization, IsRecomputed) {
  const Case c = cases()[3];
  std::vector<Outcome> plain(c.shares.size()), again(c.shares.size());
  comm::run_threads(int(c.shares.size()), [&](Communicator& comm) {
    const auto r = size_t(comm.rank());
    for (const bool recompute : {false, true}) {
      SyncBatchNormalization bn(c.sample[0], comm.shared_from_this(), options_of(c));
      bn.to(comm.device());
      const Variable x(part_of(c, batch(c, 1), comm.rank(), comm.device()));
      const Variable y =
          recompute ? F::recompute([&](const Variable& v) { return bn.relu(v); }, x) : bn.relu(x);
      y.set_grad(part_of(c, batch(c, 2), comm.rank(), comm.device()));
      y.backward();
      (recompute ? again : plain)[r] = {y.data(),         x.grad(),       {},
                                        bn.gamma.grad(),  bn.beta.grad(), bn.avg_mean.data(),
                                        bn.avg_var.data()};
    }
  });
  for (size_t r = 0; r < plain.size(); ++r)
    for (const auto member : {&Outcome::y, &Outcome::gx, &Outcome::g_gamma, &Outcome::g_beta,
                              &Outcome::mean, &Outcome::var})
      EXPECT_EQ(testing::difference(again[r].*member, plain[r].*member), "") << r;
}

TEST(SyncBatchNormalization, TestStateNeedsNoOtherRank) {
  comm::run_threads(2, [&](Communicator& comm) {
    SyncBatchNormalization bn(3, comm.shared_from_this());
    bn.to(comm.device());
    bn.avg_var.data().fill(1);
    if (comm.rank() == 0) {
      const Array x = ones({1, 3}, {dtype::float32, comm.device()});
      EXPECT_NEAR(bn(x, false).data()(0, 0).item<double>(), 1, 1e-4);
      bn.eval();
      bn(x);
    }
  });
}

TEST(SyncBatchNormalization, FinetuneCountsTheBatchesOfAllRanks) {
  const Case c = cases()[1];
  const DeviceScope scope(cpu(0));
  F::BatchNormalization alone(c.sample[0], options_of(c));
  for (uint64_t i = 0; i < 3; ++i) alone.finetune(batch(c, i));
  comm::run_threads(3, [&](Communicator& comm) {
    SyncBatchNormalization bn(c.sample[0], comm.shared_from_this(), options_of(c));
    bn.to(comm.device());
    for (uint64_t i = 0; i < 3; ++i)
      bn.finetune(part_of(c, batch(c, i), comm.rank(), comm.device()));
    EXPECT_EQ(bn.N.data().item<int64_t>(), 3);
    expect_near(bn.avg_mean.data().to(cpu(0)), alone.avg_mean.data(), 1e-12, "mean");
    expect_near(bn.avg_var.data().to(cpu(0)), alone.avg_var.data(), 1e-12, "var");
  });
}

// Conversion of a model ---------------------------------------------------------------------------

struct Block : FunctionSet {
  F::Linear l1{4, 6};
  F::BatchNormalization bn{6};
  CATENA_FUNCTIONS(l1, bn)
  Variable operator()(const Variable& x) { return bn.relu(l1(x)); }
};
struct Tower : FunctionSet {
  std::vector<Block> blocks{1};
  F::BatchNormalization last{6};
  CATENA_FUNCTIONS(blocks, last)
};

TEST(SyncBatchNormalization, ConvertsTheLayersOfAModel) {
  comm::run_threads(2, [&](Communicator& comm) {
    Tower plain;
    plain.last.avg_mean.data().fill(2);
    Tower tower = create_mnbn_model(plain, comm.shared_from_this());
    EXPECT_EQ(plain.last.exchange(), nullptr) << "a copy is converted";
    EXPECT_EQ(tower.blocks[0].bn.exchange(), tower.last.exchange());
    EXPECT_EQ(tower.last.avg_mean.over_ranks(), OverRanks::kEqual);
    EXPECT_EQ(tower.last.avg_mean.data()(0).item<double>(), 2) << "keeps its values";
    const Tower copied = tower;
    EXPECT_EQ(copied.last.exchange(), tower.last.exchange()) << "copies share as well";
    EXPECT_EQ(synchronize_normalization(tower, nullptr), 2);
    EXPECT_EQ(tower.last.exchange(), nullptr);
    EXPECT_EQ(tower.last.avg_mean.over_ranks(), OverRanks::kMean);
    EXPECT_EQ(tower.last.N.over_ranks(), OverRanks::kPerRank);
  });
}

// Training of a model in which such a layer is, shards uneven, one rank without samples.
Values trained(Block& model, Optimizer& optimizer, const std::function<void(int64_t)>& weigh,
               const std::function<Array(const Array&)>& part) {
  for (int64_t step = 0; step < 5; ++step) {
    const Array x = part(wave({7, 4}, double(step) + 0.5, dtype::float32, 2));
    const Array t = part(wave({7, 6}, double(step), dtype::float32));
    optimizer.zero_grads();
    weigh(x.length());
    const Variable difference = model(Variable(x)) - Variable::constant(t);
    (F::sum(F::square(difference)) / double(std::max<int64_t>(1, x.length()))).backward();
    optimizer.update();
  }
  Values result = values_of(model);
  for (const Persistent& p : model.persistents()) result.push_back(p.data().to_vector<double>());
  return result;
}

TEST(SyncBatchNormalization, TrainsAModelAsOneProcessDoes) {
  const DeviceScope scope(cpu(0));
  random::seed(3);
  const Block start;
  Block alone = start;
  optimizers::MomentumSGD rule(0.05, 0.9);
  rule.setup(alone);
  const Values expected = trained(
      alone, rule, [](int64_t) {}, [](const Array& whole) { return whole; });
  for (const std::vector<int64_t>& cuts :
       {std::vector<int64_t>{0, 4, 7}, {0, 2, 2, 7}, {0, 1, 3, 6, 7}}) {
    const int ranks = int(cuts.size()) - 1;
    comm::run_threads(ranks, [&](Communicator& comm) {
      Block model = start;
      EXPECT_EQ(synchronize_normalization(model, comm.shared_from_this()), 1);
      auto optimizer = set_up(model, optimizers::MomentumSGD(0.05, 0.9), comm);
      const auto r = size_t(comm.rank());
      const Values got = trained(
          model, optimizer.actual_optimizer(),
          [&](int64_t samples) { optimizer.set_batch_weight(samples, 7); },
          [&](const Array& whole) { return whole(Slice(cuts[r], cuts[r + 1])).to(comm.device()); });
      optimizer.check_state();  // the averages too
      for (size_t k = 0; k < expected.size(); ++k)
        for (size_t i = 0; i < expected[k].size(); ++i)
          EXPECT_NEAR(got[k][i], expected[k][i], 2e-5 * std::max(1.0, std::abs(expected[k][i])))
              << k << ' ' << i;
    });
  }
}

// Errors ------------------------------------------------------------------------------------------

TEST(SyncBatchNormalization, NamesWhatIsWrong) {
  expect_contains(error_of<DeviceError>([] {
                    comm::run_threads(2, [](Communicator& comm) {
                      SyncBatchNormalization bn(3, comm.shared_from_this());
                      bn.to(cpu(5));
                      bn(ones({2, 3}, {dtype::float32, cpu(5)}));
                    });
                  }),
                  {"BatchNormalization", "cpu:5", "comm->device()"});
  expect_contains(error_of<ValueError>([] {
                    comm::run_threads(2, [](Communicator& comm) {
                      SyncBatchNormalization bn(3, comm.shared_from_this());
                      bn.to(comm.device());
                      bn(ones({1 - comm.rank(), 3}, {dtype::float32, comm.device()}));
                    });
                  }),
                  {"all ranks have 1 values a channel"});
  expect_contains(error_of<CommError>([] {
                    comm::run_threads(2, [](Communicator& comm) {
                      SyncBatchNormalization bn(3 + comm.rank(), comm.shared_from_this());
                      bn.to(comm.device());
                      bn(ones({2, 3 + comm.rank()}, {dtype::float32, comm.device()}));
                    });
                  }),
                  {"SyncBatchNormalization", "all_gather"});
}

// Capture -----------------------------------------------------------------------------------------

// Says that there are two ranks; the other one never has samples.
struct Alone final : F::StatisticsExchange {
  int ranks() const override { return 2; }
  void check(const Array&, const std::string&) const override {}
  Array gather(const Array& x) const override { return stack({x, zeros_like(x)}); }
  void sum(const Array&) const override {}
  bool weighs_by_samples() const override { return true; }
};

TEST(SyncBatchNormalization, IsCaptured) {
  CATENA_NEEDS_GPU();
  const DeviceScope scope(cuda_device(0));
  F::BatchNormalization bn(8), plain(8);
  bn.share_statistics(std::make_shared<const Alone>());
  const Array batch = random_array({6, 8, 5, 4}, -1, 1, Dtype::kFloat32, cuda_device(0), 1);
  const Array gy = random_array({6, 8, 5, 4}, -1, 1, Dtype::kFloat32, cuda_device(0), 2);
  const Array gx = zeros_like(batch), y = zeros_like(batch);
  const auto step = [&](const F::BatchNormalization& layer) {
    const Variable x(batch);
    const Variable out = layer.relu(x);
    out.set_grad(gy);
    out.backward();
    y.assign(out.data());
    gx.assign(x.grad());
  };
  step(bn);
  step(plain);
  cuda::Graph graph = cuda::Graph::capture(cuda_device(0), [&] { step(bn); });
  for (uint64_t replay = 0; replay < 3; ++replay) {
    batch.assign(random_array({6, 8, 5, 4}, -1, 1, Dtype::kFloat32, cuda_device(0), 7 + replay));
    graph.launch();
    const Array replayed_y = y.copy(), replayed_gx = gx.copy();
    step(plain);
    EXPECT_EQ(testing::difference(replayed_y, y, 1e-5, 1e-5), "");
    EXPECT_EQ(testing::difference(replayed_gx, gx, 1e-5, 1e-5), "");
  }
  EXPECT_EQ(testing::difference(bn.avg_mean.data(), plain.avg_mean.data(), 1e-6, 1e-5), "");
  EXPECT_EQ(testing::difference(bn.avg_var.data(), plain.avg_var.data(), 1e-6, 1e-5), "");
}

}  // namespace
}  // namespace catena::parallel
