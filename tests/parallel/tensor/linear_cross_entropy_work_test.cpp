// The vocabulary-parallel linear_cross_entropy: what it computes, keeps and sends, models that
// train with it, and mistakes.
#include <atomic>
#include <ostream>

#include "catena/array/logic.h"
#include "catena/autograd/grad_mode.h"
#include "catena/comm/internals.h"
#include "catena/comm/mesh.h"
#include "catena/core/memory.h"
#include "catena/functions/activation.h"
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
#include "error_text.h"
#include "parallel/tensor/linear_loss.h"

namespace catena::parallel::tensor_loss {
namespace {

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

}  // namespace
}  // namespace catena::parallel::tensor_loss
