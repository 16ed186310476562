// The vocabulary-parallel linear_cross_entropy against that of one rank: values, gradients, what it
// computes and sends, and mistakes.
#include "catena/parallel/tensor/linear_cross_entropy.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/autograd/autocast.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/mean.h"
#include "catena/comm/internals.h"
#include "catena/comm/mesh.h"
#include "catena/core/memory.h"
#include "catena/functions/activation.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/math.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "catena/functions/recompute.h"
#include "catena/kernels/loss.h"
#include "catena/kernels/matmul.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/parallel/tensor/embed_id.h"
#include "catena/parallel/tensor/functions.h"
#include "catena/parallel/tensor/linear.h"
#include "catena/parallel/tensor/placement.h"
#include "cuda/gpu.h"
#include "error_text.h"
#include "parallel/tensor/ranks.h"

namespace catena::parallel::tensor_loss {
namespace {

using namespace testing;  // NOLINT: waves and ranks
using F::Reduction;
using Options = F::LinearCrossEntropyOptions;

constexpr int64_t kTokens = 13, kSize = 6, kClasses = 10;

// Rows of W of each rank; with four, one has none.
std::vector<int64_t> rows_over(int ranks) {
  switch (ranks) {
    case 1: return {kClasses};
    case 2: return {7, 3};
    case 3: return {4, 1, 5};
    default: return {3, 0, 5, 2};
  }
}

struct Problem {
  Array h, W, b, t;  // on cpu:0
};

// Labels of all ranks; every fifth is ignored.
Array labels_of(int64_t tokens) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < tokens; ++i)
    labels.push_back(i % 5 == 3 ? -1 : int32_t(i * 7 % kClasses));
  return array(labels, {tokens}, cpu(0));
}

Problem problem(Dtype dtype, double offset = 0) {
  return {wave({kTokens, kSize}, 1, dtype), wave({kClasses, kSize}, 2, dtype),
          (wave({kClasses}, 3, dtype::float64) + offset).astype(dtype), labels_of(kTokens)};
}

// Whole gradients of h; of W and b those of all ranks.
struct Outcome {
  Array loss, h, W, b;
};

// A gradient of a loss.
const Array kOne = ones({}, {dtype::float64, cpu(0)});

// With gradients from gy on.
Outcome one_rank(const Problem& p, const Array& gy, const Options& options) {
  const Variable h(p.h), W(p.W), b(p.b);
  const Variable loss = F::linear_cross_entropy(h, W, b, p.t, options);
  loss.set_grad(gy.astype(loss.dtype()));
  loss.backward();
  return {loss.data(), h.grad(), W.grad(), b.grad()};
}

// This rank's operands.
struct Share {
  Variable h;
  OwnedParameter W, b;
  Array t;
  Share(const Problem& p, Communicator& comm)
      : h(p.h.to(comm.device())),
        W(part_of_whole(p.W.to(comm.device()), comm, 0, rows_over(comm.size()))),
        b(part_of_whole(p.b.to(comm.device()), comm, 0, rows_over(comm.size()))),
        t(p.t.to(comm.device())) {}
  Variable loss(Communicator& comm, const Options& options = {}) const {
    return F::vocab_parallel_linear_cross_entropy(h, W, b, t, comm, options);
  }
  void forget_gradients() {
    h.set_grad(Array());
    W.zero_grad();
    b.zero_grad();
  }
};

// The rows of an array of all classes that are here.
Array own_rows(const Array& whole, const Communicator& comm) {
  const std::vector<int64_t> rows = rows_over(comm.size());
  const int64_t begin = std::accumulate(rows.begin(), rows.begin() + comm.rank(), int64_t{0});
  return whole(Slice(begin, begin + rows[size_t(comm.rank())]));
}

void expect_outcome(Communicator& comm, const Share& got, const Variable& loss,
                    const Outcome& expected, double tolerance) {
  expect_whole(comm, loss.data(), "loss");
  expect_whole(comm, got.h.grad(), "gradient of h");
  expect_close(loss.data().to(cpu(0)), expected.loss, "loss", tolerance);
  expect_close(got.h.grad().to(cpu(0)), expected.h, "gradient of h", tolerance);
  expect_close(got.W.grad().to(cpu(0)), own_rows(expected.W, comm), "gradient of W", tolerance);
  expect_close(got.b.grad().to(cpu(0)), own_rows(expected.b, comm), "gradient of b", tolerance);
}

Array gradient_of_loss(Reduction reduction) {
  return reduction == Reduction::kNone ? wave({kTokens}, 4, dtype::float64) + 2.0
                                       : full({}, 3.0, {dtype::float64, cpu(0)});
}

void expect_equals_one_rank(Communicator& comm, const Problem& p, const Problem& exact,
                            double tolerance) {
  for (const Reduction reduction : {Reduction::kMean, Reduction::kSum, Reduction::kNone})
    for (const double smoothing : {0.0, 0.2})
      for (const double z_loss : {0.0, 0.1})
        for (const std::optional<int64_t> chunk :
             {std::optional<int64_t>(), std::optional<int64_t>(1), std::optional<int64_t>(5)}) {
          SCOPED_TRACE(message(comm.size(), " ranks, reduction ", int(reduction), ", smoothing ",
                               smoothing, ", z ", z_loss, ", chunk ", chunk.value_or(0)));
          const Options options{.reduction = reduction,
                                .label_smoothing = smoothing,
                                .z_loss = z_loss,
                                .chunk = chunk};
          const Array gy = gradient_of_loss(reduction);
          const Outcome expected = one_rank(exact, gy, options);
          const Share own(p, comm);
          const Variable loss = own.loss(comm, options);
          loss.set_grad(gy.astype(loss.dtype()).to(comm.device()));
          loss.backward();
          expect_outcome(comm, own, loss, expected, tolerance);
        }
}

Problem in_double(const Problem& p) {
  const Dtype d = dtype::float64;
  return {p.h.astype(d), p.W.astype(d), p.b.astype(d), p.t};
}

TEST(VocabParallelLinearLoss, EqualsOneRank) {
  for (const int ranks : kRankCounts)
    run_alike(ranks, [](Communicator& comm) {
      const Problem exact = problem(dtype::float64);
      expect_equals_one_rank(comm, exact, exact, 1e-12);
      const Problem p = problem(dtype::float32);
      expect_equals_one_rank(comm, p, in_double(p), 2e-6);
    });
}

// Scores of 16 bits have losses and gradients of b as their float64 sums have.
TEST(VocabParallelLinearLoss, OfSixteenBits) {
  for (const Dtype dtype : {dtype::float16, dtype::bfloat16})
    for (const int ranks : {2, 4})
      run_alike(ranks, [&](Communicator& comm) {
        const Problem p = problem(dtype);
        for (const double extra : {0.0, 0.1}) {
          const Options options{.label_smoothing = extra, .z_loss = extra, .chunk = 5};
          const Outcome expected = one_rank(p, kOne, options);
          const Share own(p, comm);
          const Variable loss = own.loss(comm, options);
          EXPECT_EQ(loss.dtype(), dtype::float32);
          loss.backward();
          EXPECT_EQ(own.h.grad().dtype(), dtype);
          EXPECT_EQ(own.W.grad().dtype(), dtype);
          expect_close(loss.data().to(cpu(0)), expected.loss, "loss", 1e-6);
          expect_outcome(comm, own, loss, expected, 4e-3);
        }
      });
}

// Each of two classes of four ranks has the probability 1/8, and no token their labels. In bfloat16
// a rank's part, 64.25, would be 64.
TEST(VocabParallelLinearLoss, AddsUpTheGradientOfHInFloat32) {
  const Array W = array({512., 2., -512., 0., 0., 0., 0., 0.}, cpu(0)).reshape({8, 1});
  run_alike(4, [&](Communicator& comm) {
    const OwnedParameter own = part_of_whole(W.astype(dtype::bfloat16).to(comm.device()), comm, 0);
    const Variable h(zeros({1, 1}, {dtype::bfloat16, comm.device()}));
    const Array t = full({1}, 7, {dtype::int32, comm.device()});
    F::vocab_parallel_linear_cross_entropy(h, own, t, comm).backward();
    EXPECT_EQ(h.grad().item<float>(), 0.25f);
  });
}

// A common offset costs the digits of float32 scores, and none in addition.
TEST(VocabParallelLinearLoss, KeepsDigitsAndRange) {
  const Problem p = problem(dtype::float32, 3000);
  for (const double smoothing : {0.0, 0.9}) {
    const Options options{.label_smoothing = smoothing, .chunk = 5};
    const double expected = one_rank(in_double(p), kOne, options).loss.item<double>();
    const double single = one_rank(p, kOne, options).loss.item<double>();
    run_alike(3, [&](Communicator& comm) {
      const Share own(p, comm);
      const double loss = own.loss(comm, options).item<double>();
      EXPECT_NEAR(loss, expected, 2e-4);
      EXPECT_NEAR(loss, single, 2e-6);
    });
  }
}

// The classes of one rank have the probability 0.
TEST(VocabParallelLinearLoss, MaskedClasses) {
  Problem p = problem(dtype::float32);
  p.b(Slice(0, 4)).fill(-std::numeric_limits<double>::infinity());
  p.t.assign(where(less(p.t, 4), -1, p.t));
  const Options options{.chunk = 5};
  const Outcome expected = one_rank(p, kOne, options);
  ASSERT_TRUE(std::isfinite(expected.loss.item<double>()));
  run_alike(3, [&](Communicator& comm) {
    const Share own(p, comm);
    const Variable loss = own.loss(comm, options);
    loss.backward();
    expect_outcome(comm, own, loss, expected, 2e-6);
  });
}

TEST(VocabParallelLinearLoss, IgnoredLabelsAlone) {
  for (const int64_t tokens : {int64_t{4}, int64_t{0}})
    run_alike(2, [&](Communicator& comm) {
      Problem p = problem(dtype::float64);
      p.h = p.h(Slice(0, tokens));
      p.t = full({tokens}, 2, {dtype::int32, cpu(0)});
      const Share own(p, comm);
      const Variable loss =
          own.loss(comm, {.ignore_label = 2, .label_smoothing = 0.1, .z_loss = 0.1});
      loss.backward();
      EXPECT_EQ(loss.item<double>(), 0);
      EXPECT_TRUE(array_equal(own.h.grad(), zeros_like(own.h.data())));
      EXPECT_TRUE(array_equal(own.W.grad(), zeros_like(own.W.data())));
      ASSERT_NE(mean_of(loss), nullptr);
      EXPECT_EQ(mean_of(loss)->counted.item<double>(), 0);
    });
}

TEST(VocabParallelLinearLoss, GivesEqualBits) {
  for (const Dtype dtype : {dtype::float32, dtype::bfloat16})
    run_alike(3, [&](Communicator& comm) {
      const auto run = [&] {
        const Share own(problem(dtype), comm);
        const Variable loss = own.loss(comm, {.z_loss = 0.1, .chunk = 3});
        loss.backward();
        return Outcome{loss.data(), own.h.grad(), own.W.grad().copy(), own.b.grad().copy()};
      };
      const Outcome first = run(), second = run();
      EXPECT_TRUE(array_equal(first.loss, second.loss));
      EXPECT_TRUE(array_equal(first.h, second.h));
      EXPECT_TRUE(array_equal(first.W, second.W));
      EXPECT_TRUE(array_equal(first.b, second.b));
    });
}

// What it computes and sends ----------------------------------------------------------------------

// The products of all ranks, and their kernels that make gradients of scores.
std::atomic<int> g_products{0}, g_gradients{0};
bool count_product(const MatmulCall&) {
  ++g_products;
  return false;  // declined
}
bool count_gradient(const CrossEntropyGradCall&) {
  ++g_gradients;
  return false;
}

struct Counts {
  int forward, backward;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& to, const Counts& c) {
  return to << c.forward << " and " << c.backward;
}

struct WantedOperands {
  bool h = true, W = true;
  Reduction reduction = Reduction::kMean;
  bool backprop = true;
};

// Of one rank, for three chunks.
void expect_work(const WantedOperands& wanted, const Counts& products, const Counts& messages) {
  constexpr int kRanks = 2;
  std::atomic<int> forward{0};
  g_products = g_gradients = 0;
  run_alike(kRanks, [&](Communicator& comm) {
    const Share own(problem(dtype::float64), comm);
    const auto operand = [](const Variable& v, bool is_wanted) {
      return is_wanted ? v : Variable::constant(v.data());
    };
    const std::optional<NoBackprop> off =
        wanted.backprop ? std::optional<NoBackprop>() : std::optional<NoBackprop>(std::in_place);
    const auto calls = [&] { return int(comm::internals(comm).calls()); };
    optimizers::SGD rule;
    rule.setup(Parameters{own.W});
    if (!wanted.W) rule.freeze(own.W);
    const int before = calls();
    const Variable loss = F::sum(F::vocab_parallel_linear_cross_entropy(
        operand(own.h, wanted.h), own.W, own.t, comm, {.reduction = wanted.reduction, .chunk = 5}));
    EXPECT_EQ(calls() - before, messages.forward);
    comm.barrier();
    forward = g_products.load();
    comm.barrier();
    const int between = calls();
    if (wanted.backprop && (wanted.h || wanted.W)) loss.backward();
    EXPECT_EQ(calls() - between, messages.backward);
  });
  EXPECT_EQ(g_gradients, wanted.backprop && (wanted.h || wanted.W) ? kRanks * 3 : 0);
  EXPECT_EQ((Counts{forward, g_products - forward}),
            (Counts{kRanks * products.forward, kRanks * products.backward}));
}

TEST(VocabParallelLinearLoss, ComputesAndSendsWhatIsWantedAlone) {
  kernels::matmul.providers(DeviceType::kCpu);  // loads them, so that this one comes before all
  kernels::matmul.provide(DeviceType::kCpu, "counted", &count_product, 999);
  kernels::softmax_cross_entropy_grad.providers(DeviceType::kCpu);
  kernels::softmax_cross_entropy_grad.provide(DeviceType::kCpu, "counted", &count_gradient, 999);
  expect_work({}, {9, 0}, {6, 0});
  expect_work({.W = false}, {6, 0}, {6, 0});
  expect_work({.h = false}, {6, 0}, {3, 0});
  expect_work({.h = false, .W = false}, {3, 0}, {3, 0});
  expect_work({.reduction = Reduction::kNone}, {3, 9}, {3, 6});
  expect_work({.backprop = false}, {3, 0}, {3, 0});
}

// Of 16 chunks.
TEST(VocabParallelLinearLoss, HoldsTheScoresOfTwoChunks) {
  constexpr int64_t kMany = 512, kRows = 10000, kChunk = 32, kFloat = 4;
  run_alike(2, [&](Communicator& comm) {
    const ArrayOptions here{dtype::float32, comm.device()};
    const Variable h(ones({kMany, 2}, here)), W(ones({kRows, 2}, here));
    const Array t = zeros({kMany}, {dtype::int32, comm.device()});
    const auto all = [&] {
      F::vocab_parallel_linear_cross_entropy(h, W * 1.0, t, comm, {.chunk = kChunk}).backward();
    };
    all();
    reset_peak_memory(comm.device());
    const size_t before = memory_statistics(comm.device()).in_use;
    all();
    const auto extra = int64_t(memory_statistics(comm.device()).peak_in_use - before);
    const int64_t scores = 2 * kChunk * kRows * kFloat;
    EXPECT_GE(extra, scores);
    // W and its gradients, and numbers of tokens.
    EXPECT_LE(extra, scores + (4 * 2 * kRows + 64 * kMany) * kFloat);
  });
}

// By default ranks of which one has more classes than the other cut the tokens alike.
TEST(VocabParallelLinearLoss, DefaultChunksAreTheSameOnAllRanks) {
  run_alike(2, [&](Communicator& comm) {
    const ArrayOptions here{dtype::float32, comm.device()};
    const OwnedParameter W = part_of_whole(zeros({42000, 1}, here), comm, 0, {40000, 2000});
    const auto calls = [&](int64_t tokens) {
      const NoBackprop off;
      const auto before = comm::internals(comm).calls();
      F::vocab_parallel_linear_cross_entropy(zeros({tokens, 1}, here), W,
                                             zeros({tokens}, {dtype::int32, comm.device()}), comm);
      return comm::internals(comm).calls() - before;
    };
    EXPECT_EQ(calls(1088), 1);
    EXPECT_EQ(calls(1089), 2);
  });
}

TEST(VocabParallelLinearLoss, BackwardRunsAgain) {
  for (const Reduction reduction : {Reduction::kMean, Reduction::kNone})
    run_alike(3, [&](Communicator& comm) {
      Share own(problem(dtype::float64), comm);
      const Variable loss = F::sum(own.loss(comm, {.reduction = reduction, .chunk = 5}));
      loss.backward();
      const Array h = own.h.grad().copy(), W = own.W.grad().copy();
      own.forget_gradients();
      loss.backward();
      EXPECT_TRUE(array_equal(own.h.grad(), h));
      EXPECT_TRUE(array_equal(own.W.grad(), W));
    });
}

TEST(VocabParallelLinearLoss, IsTheSameWithoutBackpropAndInRecompute) {
  run_alike(3, [](Communicator& comm) {
    const Problem p = problem(dtype::float64);
    const Options options{.label_smoothing = 0.1, .z_loss = 0.1, .chunk = 5};
    const Share own(p, comm), again(p, comm);
    const Variable loss = own.loss(comm, options);
    loss.backward();
    {
      const NoBackprop off;
      EXPECT_TRUE(array_equal(own.loss(comm, options).data(), loss.data()));
    }
    const Variable recomputed = F::recompute(
        [&](const Variable& h) {
          return F::vocab_parallel_linear_cross_entropy(h, again.W, again.b, again.t, comm,
                                                        options);
        },
        again.h);
    recomputed.backward();
    EXPECT_TRUE(array_equal(recomputed.data(), loss.data()));
    EXPECT_TRUE(array_equal(again.h.grad(), own.h.grad()));
    EXPECT_TRUE(array_equal(again.W.grad(), own.W.grad()));
  });
}

// Gradients of the sum of the cubes of the first gradient of h and of W.
TEST(VocabParallelLinearLoss, HasASecondOrder) {
  const Problem p = problem(dtype::float64);
  for (const Reduction reduction : {Reduction::kMean, Reduction::kNone}) {
    const Options options{.reduction = reduction, .label_smoothing = 0.1, .z_loss = 0.1};
    const auto cubes = [](const Variable& g) { return F::sum(g * g * g); };
    const Variable h(p.h), W(p.W);
    const Variable loss = F::linear_cross_entropy(h, W, p.t, options);
    F::sum(loss * loss).backward({.create_graph = true});
    const Array first = h.grad().copy(), first_W = W.grad().copy();
    const Variable total = cubes(h.grad_variable()) + cubes(W.grad_variable());
    total.backward();
    for (const int ranks : kRankCounts)
      run_alike(ranks, [&](Communicator& comm) {
        SCOPED_TRACE(message(ranks, " ranks, reduction ", int(reduction)));
        const Variable own_h(p.h.to(comm.device()));
        const OwnedParameter placed =
            part_of_whole(p.W.to(comm.device()), comm, 0, rows_over(ranks));
        const Variable& own_W = placed.variable();
        const Variable own = F::vocab_parallel_linear_cross_entropy(
            own_h, placed, p.t.to(comm.device()), comm, options);
        F::sum(own * own).backward({.create_graph = true});
        expect_whole(comm, own_h.grad(), "first gradient");
        expect_close(own_h.grad().to(cpu(0)), first, "first gradient");
        expect_close(own_W.grad().to(cpu(0)), own_rows(first_W, comm), "first gradient of W");
        const Variable g = own_h.grad_variable(), gW = own_W.grad_variable();
        placed.zero_grad();
        (cubes(g) + F::sum_of_ranks(cubes(gW), comm)).backward();
        expect_close(own_h.grad().to(cpu(0)), h.grad(), "second gradient", 1e-11);
        expect_close(own_W.grad().to(cpu(0)), own_rows(W.grad(), comm), "of W", 1e-11);
      });
  }
}

TEST(VocabParallelLinearLoss, AutocastLeavesParametersAndTheLossInFloat32) {
  const Problem p = problem(dtype::float32);
  run_alike(2, [&](Communicator& comm) {
    const Share own(p, comm);
    const Outcome expected = one_rank(p, kOne, {});
    const AutocastScope autocast(Dtype::kBFloat16);
    const Variable loss = own.loss(comm);
    loss.backward();
    EXPECT_EQ(loss.dtype(), dtype::float32);
    EXPECT_EQ(own.W.grad().dtype(), dtype::float32);
    expect_outcome(comm, own, loss, expected, 2e-2);
  });
}

// Models ------------------------------------------------------------------------------------------

constexpr int64_t kWords = 12, kHidden = 8, kInner = 24, kText = 26;
constexpr int kSteps = 5;

// Words and the ones to predict; those of the first half ignore more.
std::pair<Array, Array> text_of(int step) {
  std::vector<int32_t> ids(kText), labels(kText);
  for (int i = 0; i < kText; ++i) {
    ids[size_t(i)] = (i * i + 5 * i + 3 * step) % int(kWords);
    const bool ignored = i < kText / 2 ? i % 2 == 0 : i % 7 == 0;
    labels[size_t(i)] = ignored ? -1 : (ids[size_t(i)] * 5 + 1) % int(kWords);
  }
  return {array(ids, {kText}, cpu(0)), array(labels, {kText}, cpu(0))};
}

F::LinearOptions of_double() { return {.bias = 0.1, .dtype = dtype::float64}; }

// A small language model without attention, whose table of words is the head too.
template <class Embed, class Up, class Down>
struct Tied : FunctionSet {
  Embed embed;
  Up up;
  Down down;
  F::LayerNormalization norm{kHidden, {.dtype = dtype::float64}};
  Tied(Embed e, Up u, Down d) : embed(std::move(e)), up(std::move(u)), down(std::move(d)) {}
  CATENA_FUNCTIONS(embed, up, down, norm)
  Variable hidden(const Array& ids) {
    const Variable h = embed(ids);
    return norm(h + down(F::gelu(up(h))));
  }
};

auto whole_model() {
  return Tied{F::EmbedID(kWords, kHidden, {.dtype = dtype::float64}),
              F::Linear(kHidden, kInner, of_double()), F::Linear(kInner, kHidden, of_double())};
}
auto split_model(Communicator& comm) {
  return Tied{VocabParallelEmbedID(kWords, kHidden, comm, {.dtype = dtype::float64}),
              ColumnParallelLinear(kHidden, kInner, comm, of_double()),
              RowParallelLinear(kInner, kHidden, comm, of_double())};
}

const Options kTraining{.label_smoothing = 0.1, .z_loss = 0.01, .chunk = 4};

struct Trained {
  std::vector<double> losses;
  Array table, down;
};

Trained one_process() {
  const DeviceScope scope(cpu(0));
  random::default_state(cpu(0)).seed(kSeed);
  auto model = whole_model();
  optimizers::Adam optimizer(0.02);
  optimizer.setup(model);
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    const auto [ids, labels] = text_of(step);
    optimizer.zero_grads();
    const Variable loss =
        F::linear_cross_entropy(model.hidden(ids), model.embed.W, labels, kTraining);
    loss.backward();
    optimizer.update();
    trained.losses.push_back(loss.item<double>());
  }
  trained.table = model.embed.W.data();
  trained.down = model.down.W.data();
  return trained;
}

// Replicas with a half of the words each, of which they count different numbers.
TEST(VocabParallelLinearLoss, TrainsATiedModel) {
  const Trained expected = one_process();
  EXPECT_LT(expected.losses.back(), 0.9 * expected.losses.front());
  for (const int replicas : {1, 2})
    for (const int ranks : kRankCounts)
      comm::run_threads(replicas * ranks, [&](Communicator& comm) {
        SCOPED_TRACE(message(replicas, " replicas of ", ranks, " ranks"));
        Mesh mesh(comm, {{"data", replicas}, {"tensor", ranks}});
        Communicator& tensor = mesh["tensor"];
        random::default_state(comm.device()).seed(kSeed);
        auto model = split_model(tensor);
        auto optimizer = create_multi_node_optimizer(optimizers::Adam(0.02), mesh["data"]);
        optimizer.setup(model);
        const int64_t each = kText / replicas, begin = each * mesh.coordinate("data");
        for (int step = 0; step < kSteps; ++step) {
          const auto [ids, labels] = text_of(step);
          const Slice own(begin, begin + each);
          optimizer.zero_grads();
          const Variable loss = F::vocab_parallel_linear_cross_entropy(
              model.hidden(ids(own).to(comm.device())), model.embed.W,
              labels(own).to(comm.device()), tensor, kTraining);
          loss.backward();
          optimizer.update();
          if (replicas == 1) {
            EXPECT_NEAR(loss.item<double>(), expected.losses[size_t(step)], 1e-11);
          }
        }
        expect_close(whole_of(tensor, model.embed.W.data(), 0), expected.table, "table", 1e-9);
        expect_close(whole_of(tensor, model.down.W.data(), 1), expected.down, "down", 1e-9);
      });
}

// Behind sequence-parallel layers h is a slice.
TEST(VocabParallelLinearLoss, OfASliceOfTheSequence) {
  Problem p = problem(dtype::float64);
  p.h = p.h(Slice(0, 12));
  p.t = p.t(Slice(0, 12));
  const Outcome expected = one_rank(p, kOne, {});
  run_alike(3, [&](Communicator& comm) {
    const Share own(p, comm);
    const Variable h(slice_on(comm, p.h, 0));
    const Variable loss = F::vocab_parallel_linear_cross_entropy(F::concat_of_ranks(h, comm, 0),
                                                                 own.W, own.b, own.t, comm);
    loss.backward();
    expect_close(whole_of(comm, h.grad(), 0), expected.h, "gradient of h");
    expect_close(own.W.grad().to(cpu(0)), own_rows(expected.W, comm), "gradient of W");
  });
}

// Mistakes ----------------------------------------------------------------------------------------

TEST(VocabParallelLinearLoss, TakesAWWithoutPlacementForAnEqualSlice) {
  const Problem p = problem(dtype::float64);
  const Outcome expected = one_rank({p.h, p.W, zeros({kClasses}, dtype::float64), p.t}, kOne, {});
  run_alike(2, [&](Communicator& comm) {
    const Variable W(slice_on(comm, p.W, 0)), h(p.h.to(comm.device()));
    const Variable loss =
        F::vocab_parallel_linear_cross_entropy(h, W * 1.0, p.t.to(comm.device()), comm);
    loss.backward();
    expect_close(loss.data().to(cpu(0)), expected.loss, "loss");
    expect_close(whole_of(comm, W.grad(), 0), expected.W, "gradient of W");
  });
}

TEST(VocabParallelLinearLoss, SaysWhatDoesNotFit) {
  run_alike(2, [](Communicator& comm) {
    const Share own(problem(dtype::float32), comm);
    const Device here = comm.device();
    const auto error = [&](const VariableOperand& W, const Array& t, const Options& options = {}) {
      return error_of<Error>(
          [&] { F::vocab_parallel_linear_cross_entropy(own.h, W, t, comm, options); });
    };
    const Array W = wave({kClasses, kSize}, 2, dtype::float32).to(here);
    expect_contains(error(Parameter(W), own.t),
                    {"vocab_parallel_linear_cross_entropy: expected a W whose rows are cut over "
                     "the 2 ranks of the communicator, got a parameter of shape (10, 6) of which "
                     "this rank has the whole; make it with parallel::part_of_whole"});
    expect_contains(error(part_of_whole(W, comm, 1), own.t),
                    {"got a parameter of shape (10, 3), placed as 3 of 6 columns, ranks "});
    // Variables without placement, of which the ranks have 7 and 3 rows.
    expect_contains(error(own.W.data(), own.t),
                    {"the rows of W do not join: rank 0 has the 7 classes from class 0 on, rank 1 "
                     "the 3 from class 3 on; make W with parallel::part_of_whole"});
    Array other = own.t.copy();
    if (comm.rank() == 1) other(4).fill(1);
    expect_contains(error(own.W, other), {"token 4 has the label 8 on rank 0 and 1 on rank 1; all "
                                          "ranks of the communicator take the same tokens"});
    other = own.t.copy();
    other(2).fill(kClasses);
    expect_contains(error(own.W, other), {"label 10 at position 2 is outside [0, 10)"});
    expect_contains(error(own.W, own.t(Slice(0, 4))),
                    {"Expected as labels are class numbers of 0 to 9"});
    expect_contains(error(own.W, own.t, {.label_smoothing = 1}),
                    {"vocab_parallel_linear_cross_entropy", "label_smoothing"});
    const Variable elsewhere(own.h.data().to(cpu(9)));
    expect_contains(error_of<DeviceError>([&] {
                      F::vocab_parallel_linear_cross_entropy(elsewhere, own.W, own.t, comm);
                    }),
                    {"h is on cpu:9, this rank's communicator on "});
    EXPECT_EQ(error(own.W, own.t), "no error");
  });
}

TEST(VocabParallelLinearLoss, AWOfAnotherAxis) {
  comm::run_threads(4, [](Communicator& comm) {
    Mesh mesh(comm, {{"data", 2}, {"tensor", 2}});
    const Array h = zeros({2, 3}, {dtype::float32, comm.device()}),
                t = zeros({2}, {dtype::int32, comm.device()});
    const OwnedParameter W =
        part_of_whole(zeros({4, 3}, {dtype::float32, comm.device()}), mesh["data"], 0);
    expect_contains(error_of<ValueError>(
                        [&] { F::vocab_parallel_linear_cross_entropy(h, W, t, mesh["tensor"]); }),
                    {"placed as 2 of 4 rows, data "});
  });
}

TEST(VocabParallelLinearLoss, NamesRanksThatDiffer) {
  const std::string error = error_of<CommError>([] {
    run_alike(2, [](Communicator& comm) {
      const Share own(problem(dtype::float32), comm);
      own.loss(comm, {.chunk = 4 + comm.rank()});
    });
  });
  expect_contains(error, {"all_gather", "float32[24]", "float32[30]",
                          "F::vocab_parallel_linear_cross_entropy"});
}

TEST(VocabParallelLinearLoss, NeedsItsCommunicatorInBackwardOfEachLoss) {
  run_alike(2, [](Communicator& comm) {
    CommunicatorPtr part = comm.split(0, comm.rank());
    const Share own(problem(dtype::float32), *part);
    const Variable mean = own.loss(*part), each = own.loss(*part, {.reduction = Reduction::kNone});
    part.reset();
    mean.backward();
    expect_contains(error_of<CommError>([&] { F::sum(each).backward(); }),
                    {"vocab_parallel_linear_cross_entropy: backward after the communicator was "
                     "destroyed"});
  });
}

// GPUs --------------------------------------------------------------------------------------------

TEST(VocabParallelLinearLoss, EqualsOneRankOnAGpu) {
  CATENA_NEEDS_GPU();
  const auto program = [](Communicator& comm) {
    const Problem exact = problem(dtype::float64), p = problem(dtype::float32);
    expect_equals_one_rank(comm, exact, exact, 1e-12);
    expect_equals_one_rank(comm, p, in_double(p), 1e-5);
  };
  for (const int ranks : {2, 4})
    comm::run_threads(
        ranks, program,
        {.devices = std::vector<Device>(size_t(ranks), cuda_device(0)), .timeout = 60});
}

// Where looking would wait for the device.
TEST(VocabParallelLinearLoss, GivesNaNForWhatDoesNotFitOnAGpu) {
  CATENA_NEEDS_GPU();
  const auto program = [](Communicator& comm) {
    const Share own(problem(dtype::float32), comm);
    const auto losses = [&](const VariableOperand& W, const Array& t) {
      return F::vocab_parallel_linear_cross_entropy(own.h, W, t, comm,
                                                    {.reduction = Reduction::kNone})
          .data()
          .to_vector<double>();
    };
    Array t = own.t.copy();
    t(0).fill(kClasses);
    if (comm.rank() == 1) t(1).fill(1);
    const std::vector<double> some = losses(own.W, t);
    EXPECT_TRUE(std::isnan(some[0]) && std::isnan(some[1]) && std::isfinite(some[2]));
    EXPECT_EQ(some[3], 0);
    for (const double loss : losses(own.W.data(), own.t)) EXPECT_TRUE(std::isnan(loss));
  };
  comm::run_threads(2, program, {.devices = {cuda_device(0), cuda_device(0)}, .timeout = 60});
}

}  // namespace
}  // namespace catena::parallel::tensor_loss
