// Each tensor-parallel layer and the loss against the layer that is not split.
#include <cmath>

#include "catena/functions/array/reshape.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/parallel/tensor/embed_id.h"
#include "catena/parallel/tensor/functions.h"
#include "catena/parallel/tensor/linear.h"
#include "catena/parallel/tensor/normalization.h"
#include "catena/parallel/tensor/softmax_cross_entropy.h"
#include "cuda/gpu.h"
#include "error_text.h"
#include "parallel/tensor/ranks.h"

namespace catena::parallel::tensor_layers {
namespace {

using namespace testing;  // NOLINT: waves and ranks

constexpr int64_t kIn = 12, kOut = 24, kRows = 12;

Array input(const Shape& shape, double phase = 1) { return wave(shape, phase, dtype::float64); }

F::LinearOptions linear_options() {
  return {.initial_bias = wave({kOut}, 9, dtype::float64), .dtype = dtype::float64};
}

// What a layer makes of x, and the gradients of sum(y^2 * weight).
struct Outcome {
  Array y, gx;
  Arrays gradients;  // of the parameters
};

Variable squared(const Variable& y, const Array& weight) { return F::sum(y * y * weight); }

// The layer that is not split, on cpu:0, begun with the generators of the ranks.
template <class Layer>
Outcome one_process(const std::function<Layer()>& make, const Array& x_array) {
  const DeviceScope scope(cpu(0));
  random::default_state(cpu(0)).seed(kSeed);
  Layer layer = make();
  const Variable x(x_array);
  const Variable y = layer(x);
  squared(y, input(y.shape(), 5)).backward();
  Outcome outcome{y.data(), x.grad(), {}};
  for (const Parameter& p : layer.parameters()) outcome.gradients.push_back(p.grad());
  return outcome;
}

// How x, y and the parameters are cut: an axis, or kWhole.
struct Cuts {
  int x, y;
  std::vector<int> parameters;
};

void expect_part(Communicator& comm, const Array& got, const Array& expected, int axis,
                 const std::string& what) {
  if (axis == kWhole) {
    expect_whole(comm, got, what);
    expect_close(got.to(cpu(0)), expected, what);
  } else {
    expect_close(whole_of(comm, got, axis), expected, what);
  }
}

template <class Layer>
void check_layer(Communicator& comm, Layer& layer, const Cuts& cuts, const Array& x_whole,
                 const Outcome& expected) {
  const auto own = [&](const Array& whole, int axis) {
    return axis == kWhole ? whole.to(comm.device()) : slice_on(comm, whole, axis);
  };
  const Variable x(own(x_whole, cuts.x));
  const Variable y = layer(x);
  squared(y, own(input(expected.y.shape(), 5), cuts.y)).backward();
  expect_part(comm, y.data(), expected.y, cuts.y, "y");
  expect_part(comm, x.grad(), expected.gx, cuts.x, "gradient of x");
  const Parameters parameters = layer.parameters();
  ASSERT_EQ(parameters.size(), expected.gradients.size());
  for (size_t i = 0; i < parameters.size(); ++i)
    expect_part(comm, parameters[i].grad(), expected.gradients[i], cuts.parameters[i],
                "gradient of parameter " + std::to_string(i));
}

TEST(ColumnParallelLinear, EqualsTheWholeLayer) {
  for (const bool nobias : {false, true}) {
    F::LinearOptions options = linear_options();
    if (nobias) options.nobias = true, options.initial_bias = {};
    options.flatten = nobias;
    const Array x = options.flatten ? input({kRows, 3, kIn / 3}) : input({kRows, 2, kIn});
    const Outcome expected =
        one_process<F::Linear>([&] { return F::Linear(kIn, kOut, options); }, x);
    for (const int ranks : kRankCounts) {
      for (const bool gathers : {false, true}) {
        for (const bool sequence : {false, true}) {
          SCOPED_TRACE(message(ranks, " ranks, gather ", gathers, ", sequence ", sequence));
          run_alike(ranks, [&](Communicator& comm) {
            ColumnParallelLinear layer(kIn, kOut, comm, options, {gathers, sequence});
            EXPECT_EQ(layer.in_size(), kIn);
            EXPECT_EQ(layer.out_size(), kOut);
            EXPECT_EQ(layer.W.shape(), (Shape{kOut / ranks, kIn}));
            const int last = options.flatten ? 1 : 2;
            check_layer(comm, layer, {sequence ? 0 : kWhole, gathers ? kWhole : last, {0, 0}}, x,
                        expected);
          });
        }
      }
    }
  }
}

TEST(RowParallelLinear, EqualsTheWholeLayer) {
  for (const bool nobias : {false, true}) {
    F::LinearOptions options = linear_options();
    if (nobias) options.nobias = true, options.initial_bias = {};
    const Array x = nobias ? input({kRows, kIn}) : input({kRows, 2, kIn});
    const Outcome expected =
        one_process<F::Linear>([&] { return F::Linear(kIn, kOut, options); }, x);
    for (const int ranks : kRankCounts) {
      for (const bool cut : {false, true}) {
        for (const bool sequence : {false, true}) {
          SCOPED_TRACE(message(ranks, " ranks, cut ", cut, ", sequence ", sequence));
          run_alike(ranks, [&](Communicator& comm) {
            RowParallelLinear layer(kIn, kOut, comm, options, {cut, sequence});
            EXPECT_EQ(layer.in_size(), kIn);
            EXPECT_EQ(layer.out_size(), kOut);
            EXPECT_EQ(layer.W.shape(), (Shape{kOut, kIn / ranks}));
            check_layer(comm, layer,
                        {cut ? nobias ? 1 : 2 : kWhole, sequence ? 0 : kWhole, {1, kWhole}}, x,
                        expected);
          });
        }
      }
    }
  }
}

TEST(RowParallelLinear, CutsFlattenedRows) {
  const Array x = input({4, 2, 3, 2});
  F::LinearOptions options = linear_options();
  options.flatten = true;
  const Outcome expected = one_process<F::Linear>([&] { return F::Linear(12, kOut, options); }, x);
  run_alike(2, [&](Communicator& comm) {
    RowParallelLinear layer(12, kOut, comm, options, {.input_is_parallel = false});
    check_layer(comm, layer, {kWhole, kWhole, {1, kWhole}}, x, expected);
  });
}

TEST(SequenceParallelLayerNormalization, EqualsTheWholeLayer) {
  const Array x = input({kRows, kIn});
  for (const bool use_gamma : {true, false}) {
    for (const bool use_beta : {true, false}) {
      const F::LayerNormalizationOptions options{
          .dtype = dtype::float64, .use_gamma = use_gamma, .use_beta = use_beta};
      const Outcome expected = one_process<F::LayerNormalization>(
          [&] { return F::LayerNormalization(kIn, options); }, x);
      for (const int ranks : kRankCounts)
        run_alike(ranks, [&](Communicator& comm) {
          SequenceParallelLayerNormalization layer(kIn, comm, options);
          check_layer(comm, layer, {0, 0, {kWhole, kWhole}}, x, expected);
        });
    }
  }
}

TEST(SequenceParallelRMSNormalization, EqualsTheWholeLayer) {
  const Array x = input({kRows, 3, 4});
  for (const bool use_gamma : {true, false}) {
    const F::RMSNormalizationOptions options{.dtype = dtype::float64, .use_gamma = use_gamma};
    const Outcome expected = one_process<F::RMSNormalization>(
        [&] {
          return F::RMSNormalization(Shape{3, 4}, options);
        },
        x);
    for (const int ranks : kRankCounts)
      run_alike(ranks, [&](Communicator& comm) {
        SequenceParallelRMSNormalization layer(Shape{3, 4}, comm, options);
        check_layer(comm, layer, {0, 0, {kWhole}}, x, expected);
      });
  }
}

// Embeddings --------------------------------------------------------------------------------------

Array ids_of(const Shape& shape, int64_t count, Dtype dtype) {
  std::vector<int64_t> ids(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = int64_t(i * i + 3 * i) % count;
  return array(ids, shape, cpu(0)).astype(dtype);
}

TEST(VocabParallelEmbedID, EqualsTheWholeLayer) {
  const std::optional<int64_t> ignored[] = {std::nullopt, 4, -1};
  for (const auto& ignore_label : ignored) {
    Array ids = ids_of({12, 2}, kOut, dtype::int32);
    if (ignore_label) ids.reshape({-1})(Slice(7, 9)).fill(double(*ignore_label));
    const F::EmbedIDOptions options{.ignore_label = ignore_label, .dtype = dtype::float64};
    random::default_state(cpu(0)).seed(kSeed);
    const DeviceScope scope(cpu(0));
    F::EmbedID whole(kOut, 5, options);
    const Variable y = whole(ids);
    const Array weight = input(y.shape(), 5);
    squared(y, weight).backward();
    for (const int ranks : kRankCounts) {
      for (const bool sequence : {false, true}) {
        SCOPED_TRACE(message(ranks, " ranks, sequence ", sequence));
        run_alike(ranks, [&](Communicator& comm) {
          VocabParallelEmbedID layer(kOut, 5, comm, options, {sequence});
          EXPECT_EQ(layer.in_size(), kOut);
          EXPECT_EQ(layer.W.shape(), (Shape{kOut / ranks, 5}));
          const Variable got = layer(ids.to(comm.device()));
          squared(got, sequence ? slice_on(comm, weight, 0) : weight.to(comm.device())).backward();
          expect_part(comm, got.data(), y.data(), sequence ? 0 : kWhole, "vectors");
          expect_part(comm, layer.W.grad(), whole.W.grad(), 0, "gradient of the table");
        });
      }
    }
  }
}

TEST(VocabParallelEmbedID, RefusesIdsThatNobodyHas) {
  run_alike(2, [](Communicator& comm) {
    VocabParallelEmbedID layer(6, 2, comm);
    const auto look_up = [&](int64_t id) {
      return error_of<ValueError>([&] {
        layer(array(std::vector<int64_t>{0, id}, {2}, comm.device()));
      });
    };
    expect_contains(look_up(6), {"id 6 at position 1 is outside [0, 6)"});
    expect_contains(look_up(-1), {"id -1 at position 1"});
    EXPECT_EQ(look_up(5), "no error");
    expect_contains(error_of<DtypeError>([&] { layer(zeros({2}, {dtype::float32})); }),
                    {"VocabParallelEmbedID: expected ids, integers, got float32"});
  });
}

// A table of 6 vectors, begun on CPUs, as ranks that share a GPU share its generator.
struct EmbedOnGpu {
  VocabParallelEmbedID layer;
  explicit EmbedOnGpu(Communicator& comm)
      : layer(6, 2, comm, {.initialW = wave({6, 2}, 1, dtype::float32)}) {
    layer.to(comm.device());
  }
};

// The loss ----------------------------------------------------------------------------------------

struct LossCase {
  Shape scores;
  bool normalize = true;
  F::Reduction reduction = F::Reduction::kMean;
  bool ignores_all = false;
  double offset = 0;
  double smoothing = 0;
};

std::vector<LossCase> loss_cases() {
  return {{{7, 12}},
          {{7, 12}, false},
          {{5, 12, 2, 3}},
          {{5, 12, 2}, false},
          {{7, 12}, true, F::Reduction::kSum},
          {{5, 12, 2}, true, F::Reduction::kNone},
          {{7, 12}, true, F::Reduction::kMean, true},
          {{7, 12}, true, F::Reduction::kMean, false, 900},
          {{0, 12}},
          {{7, 12}, true, F::Reduction::kMean, false, 0, 0.1},
          {{5, 12, 2}, false, F::Reduction::kMean, false, 0, 0.3},
          {{5, 12, 2}, true, F::Reduction::kNone, false, 0, 0.1},
          {{7, 12}, true, F::Reduction::kMean, false, 900, 0.2},
          {{7, 12}, true, F::Reduction::kMean, true, 0, 0.1}};
}

struct LossOutcome {
  Array loss, first, second;
};

LossOutcome go_back(const Array& scores, const std::function<Variable(const Variable&)>& loss_of,
                    const std::function<Variable(const Variable&)>& sum_up) {
  const Variable x(scores);
  const Variable loss = loss_of(x * x);
  LossOutcome outcome{loss.data(), {}, {}};
  const Variable total = F::sum(loss * loss);
  total.backward({.create_graph = true});
  outcome.first = x.grad().copy();
  const Variable g = x.grad_variable();
  sum_up(F::sum(g * g * g)).backward();
  outcome.second = x.grad().copy();
  return outcome;
}

TEST(VocabParallelLoss, EqualsTheWholeLoss) {
  for (const LossCase& c : loss_cases()) {
    const Array scores = wave(c.scores, 3, dtype::float64, 2) + std::sqrt(c.offset);
    Shape labels_shape = c.scores;
    labels_shape.erase(labels_shape.begin() + 1);
    Array labels = ids_of(labels_shape, 12, dtype::int32);
    if (labels.size() > 2) labels.reshape({-1})(Slice(1, 3)).fill(-1);
    if (c.ignores_all) labels.fill(-1);
    const LossOutcome expected = go_back(
        scores,
        [&](const Variable& x) {
          return F::softmax_cross_entropy(
              x, labels,
              {.normalize = c.normalize, .reduction = c.reduction, .label_smoothing = c.smoothing});
        },
        [](const Variable& v) { return v; });
    for (const int ranks : kRankCounts) {
      SCOPED_TRACE(message(c.scores, " on ", ranks, ", normalize ", c.normalize, ", smoothing ",
                           c.smoothing));
      run_alike(ranks, [&](Communicator& comm) {
        const LossOutcome got = go_back(
            slice_on(comm, scores, 1),
            [&](const Variable& x) {
              return F::vocab_parallel_softmax_cross_entropy(x, labels.to(comm.device()), comm,
                                                             {.normalize = c.normalize,
                                                              .reduction = c.reduction,
                                                              .label_smoothing = c.smoothing});
            },
            [&](const Variable& v) { return F::sum_of_ranks(v, comm); });
        expect_part(comm, got.loss, expected.loss, kWhole, "loss");
        expect_part(comm, got.first, expected.first, 1, "gradient");
        expect_part(comm, got.second, expected.second, 1, "second gradient");
      });
    }
  }
}

// A common offset of scores costs float32 digits of the scores, and none in addition.
TEST(VocabParallelLoss, KeepsDigitsAndRange) {
  const Array scores = (wave({6, 12}, 3, dtype::float32) * 8.0 + 3000.0).astype(dtype::float32);
  const Array labels = ids_of({6}, 12, dtype::int64);
  const double expected =
      F::softmax_cross_entropy(Variable(scores.astype(dtype::float64)), labels).item<double>();
  run_alike(3, [&](Communicator& comm) {
    const Variable x(slice_on(comm, scores, 1));
    const Variable loss =
        F::vocab_parallel_softmax_cross_entropy(x, labels.to(comm.device()), comm);
    EXPECT_EQ(loss.dtype(), dtype::float32);
    EXPECT_NEAR(loss.item<double>(), expected, 2e-6 * expected);
    // Where the scores of one rank are far above the others'.
    const Array apart = array({100.0 * comm.rank()}).astype(dtype::float32).reshape({1, 1});
    const Variable far = F::vocab_parallel_softmax_cross_entropy(
        Variable(apart.to(comm.device())), zeros({1}, {dtype::int64, comm.device()}), comm);
    EXPECT_EQ(far.item<double>(), 200);
  });
}

TEST(VocabParallelLoss, ConvertsShortScores) {
  for (const Dtype dtype : {dtype::float16, dtype::bfloat16}) {
    const Array scores = (wave({6, 12}, 3, dtype::float32) * 4.0).astype(dtype);
    const Array labels = ids_of({6}, 12, dtype::int64);
    const double expected =
        F::softmax_cross_entropy(Variable(scores.astype(dtype::float64)), labels).item<double>();
    run_alike(2, [&](Communicator& comm) {
      const Variable x(slice_on(comm, scores, 1));
      const Variable loss =
          F::vocab_parallel_softmax_cross_entropy(x, labels.to(comm.device()), comm);
      EXPECT_EQ(loss.dtype(), dtype::float32);
      EXPECT_NEAR(loss.item<double>(), expected, 1e-6 * expected);
      loss.backward();
      EXPECT_EQ(x.grad().dtype(), dtype);
    });
  }
}

TEST(VocabParallelLoss, SaysWhatDoesNotFit) {
  run_alike(2, [](Communicator& comm) {
    const Device here = comm.device();
    const auto text = [&](const Shape& scores, const Array& labels) {
      const Variable x(zeros(scores, {dtype::float32, here}));
      std::string error = "no error";
      try {
        F::vocab_parallel_softmax_cross_entropy(x, labels, comm);
      } catch (const Error& e) {
        error = e.what();
      }
      return error;
    };
    const auto labels = [&](std::vector<int64_t> values) {
      return array(values, {int64_t(values.size())}, here);
    };
    EXPECT_EQ(text({2, 3}, labels({5, -1})), "no error");
    expect_contains(text({2, 3}, labels({0, 6})), {"label 6", "[0, 6)"});
    expect_contains(text({2, 3}, labels({0, -2})), {"label -2"});
    expect_contains(text({2, 3}, labels({0, 1, 2})),
                    {"scores of shape (2, 3) need labels of shape (2,), got (3,)"});
    expect_contains(text({6}, labels({0})), {"expected scores (n, classes / ranks, ...)"});
    expect_contains(text({2, 3}, zeros({2}, {dtype::float32, here})),
                    {"expected int32 or int64 labels, got float32"});
    expect_contains(text({2, 3}, labels({0, 1}).to(cpu(9))), {"labels on cpu:9"});
    for (const double smoothing : {1.0, -0.1}) {
      const std::string error = error_of<ValueError>([&] {
        F::vocab_parallel_softmax_cross_entropy(zeros({2, 3}, {dtype::float32, here}),
                                                labels({0, 1}), comm,
                                                {.label_smoothing = smoothing});
      });
      expect_contains(error, {"label_smoothing of at least 0 and below 1"});
    }
  });
}

// Where looking would wait for the device, ids and labels that nobody has give NaN.
TEST(VocabParallelLoss, GivesNaNForWhatNobodyHasOnAGpu) {
  CATENA_NEEDS_GPU();
  const auto program = [](Communicator& comm) {
    const Device here = comm.device();
    const EmbedOnGpu made(comm);
    const auto numbers = [&](std::vector<int64_t> values) {
      return array(values, {int64_t(values.size())}, here);
    };
    const auto vectors = made.layer(numbers({0, 6, -1, 5})).data().to_vector<double>();
    const std::vector<bool> unknown = {false, true, true, false};
    for (size_t i = 0; i < 4; ++i)
      for (size_t k = 0; k < 2; ++k) EXPECT_EQ(std::isnan(vectors[2 * i + k]), unknown[i]) << i;
    const Variable scores(zeros({3, 3}, {dtype::float32, here}));
    const auto losses = F::vocab_parallel_softmax_cross_entropy(scores, numbers({5, 6, -1}), comm,
                                                                {.reduction = F::Reduction::kNone})
                            .data()
                            .to_vector<double>();
    EXPECT_NEAR(losses[0], std::log(6.0), 1e-6);
    EXPECT_TRUE(std::isnan(losses[1]));
    EXPECT_EQ(losses[2], 0);
  };
  comm::run_threads(2, program, {.devices = {cuda_device(0), cuda_device(0)}, .timeout = 60});
}

// Starts ------------------------------------------------------------------------------------------

void expect_same(const Array& a, const Array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.to_vector<double>(), b.to_vector<double>());
}

TEST(TensorLayers, BeginAsTheWholeLayers) {
  random::default_state(cpu(0)).seed(kSeed);
  const DeviceScope scope(cpu(0));
  const F::Linear first(12, 24), second(24, 12, {.initialW = initializers::Orthogonal()});
  const F::EmbedID table(24, 4);
  for (const int ranks : kRankCounts)
    run_alike(ranks, [&](Communicator& comm) {
      const ColumnParallelLinear column(12, 24, comm);
      const RowParallelLinear row(24, 12, comm, {.initialW = initializers::Orthogonal()});
      const VocabParallelEmbedID ids(24, 4, comm);
      expect_same(whole_of(comm, column.W.data(), 0), first.W.data());
      expect_same(whole_of(comm, row.W.data(), 1), second.W.data());
      expect_same(whole_of(comm, ids.W.data(), 0), table.W.data());
    });
}

TEST(TensorLayers, RefuseRanksThatBeginApart) {
  const std::function<void(Communicator&)> layers[] = {
      [](Communicator& comm) { ColumnParallelLinear(4, 4, comm); },
      [](Communicator& comm) { RowParallelLinear(4, 4, comm); },
      [](Communicator& comm) { VocabParallelEmbedID(4, 4, comm); }};
  for (const auto& make : layers)
    run_alike(2, [&](Communicator& comm) {
      random::default_state(comm.device()).seed(uint64_t(comm.rank()));
      expect_contains(
          error_of<ValueError>([&] { make(comm); }),
          {"the layer's numbers on rank 1 differs from that on rank 0", "seed(number)"});
    });
  run_alike(2, [](Communicator& comm) {
    expect_contains(
        error_of<ValueError>([&] { ColumnParallelLinear(4 + comm.rank(), 4, comm); }),
        {"ColumnParallelLinear: the layer is (4, 4) float32 on rank 0, (4, 5) float32 on rank 1"});
  });
}

TEST(TensorLayers, RefuseSizesThatCannotBeDivided) {
  run_alike(3, [](Communicator& comm) {
    expect_contains(error_of<ValueError>([&] { ColumnParallelLinear(6, 8, comm); }),
                    {"ColumnParallelLinear: out_size 8 cannot be divided among 3 ranks"});
    expect_contains(error_of<ValueError>([&] { RowParallelLinear(8, 6, comm); }),
                    {"RowParallelLinear: in_size 8 cannot be divided among 3 ranks"});
    expect_contains(error_of<ValueError>([&] { VocabParallelEmbedID(8, 6, comm); }),
                    {"VocabParallelEmbedID: in_size 8 cannot be divided among 3 ranks"});
  });
}

TEST(TensorLayers, SayThatTheyWereMovedFrom) {
  run_alike(2, [](Communicator& comm) {
    ColumnParallelLinear column(4, 4, comm);
    SequenceParallelLayerNormalization norm(4, comm);
    const ColumnParallelLinear kept(std::move(column));
    const SequenceParallelLayerNormalization kept_norm(std::move(norm));
    const Array x = zeros({2, 4}, {dtype::float32, comm.device()});
    expect_contains(error_of<ValueError>([&] { column(x); }), {"it was moved from"});
    expect_contains(error_of<ValueError>([&] { norm(x); }), {"was moved from"});
    EXPECT_EQ(kept(x).shape(), (Shape{2, 2}));
    EXPECT_EQ(kept_norm(x).shape(), (Shape{2, 4}));
  });
}

}  // namespace
}  // namespace catena::parallel::tensor_layers
