// The CUDA kernels of sampled losses, of connectionist temporal classification and of the cross
// entropy in place, run on threads of the host, against the providers of the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backends/cuda/loss/cross_entropy_in_place.h"
#include "backends/cuda/loss/ctc.h"
#include "backends/cuda/loss/sampled_logistic.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/kernels/ctc.h"
#include "catena/kernels/index.h"
#include "catena/kernels/loss.h"
#include "catena/kernels/sampling.h"
#include "catena/testing.h"

namespace catena {
namespace {

using gpu::Float;
using testing::random_array;

const gpu::Launch kLaunch{nullptr, 1, 0, false};

Array like(const Array& a) { return full(a.shape(), 7, {a.dtype(), a.device()}); }
Array lengths(const std::vector<int32_t>& values) { return array(values); }

// The arrays of a call, and what kernels write.
struct CtcCase {
  Array x, t, inputs, labels, norms, alpha, losses, loss, gloss, gx;
  double factor = 1;
  CtcCall call() const {
    return {&x, &t, &inputs, &labels, 0, factor, &norms, &alpha, &losses, &loss};
  }
  CtcCase with_other_results() const {
    CtcCase other = *this;
    for (Array* a : {&other.norms, &other.alpha, &other.losses, &other.loss, &other.gx})
      *a = like(*a);
    return other;
  }
};

CtcCase ctc_case(int64_t steps, int64_t classes, int64_t labels, Dtype dtype, bool one_each) {
  constexpr int64_t kBatch = 3;
  CtcCase c;
  c.x = random_array({steps, kBatch, classes}, -2, 2, dtype, cpu(), 1);
  c.t = random_array({kBatch, labels}, 1, double(classes), Dtype::kInt32, cpu(), 2);
  c.inputs = lengths({int32_t(steps), int32_t(steps - 1), int32_t(steps)});
  c.labels = lengths({int32_t(labels), int32_t(labels / 2), int32_t(labels > 0)});
  c.norms = zeros({2, steps, kBatch}, dtype);
  c.alpha = zeros({kBatch, steps, 2 * labels + 1}, dtype);
  c.losses = zeros({kBatch}, dtype);
  c.loss = zeros(one_each ? Shape{kBatch} : Shape{}, dtype);
  c.gloss = random_array(c.loss.shape(), 0.5, 1, dtype, cpu(), 3);
  c.gx = zeros(c.x.shape(), dtype);
  c.factor = 1.0 / kBatch;
  return c;
}

void run_cuda_kernels(const CtcCase& c) {
  gpu::CtcArgs args{};
  args.x = c.x.raw_data();
  args.t = c.t.data<int32_t>();
  args.input_lengths = c.inputs.data<int32_t>();
  args.label_lengths = c.labels.data<int32_t>();
  args.steps = c.x.shape()[0];
  args.batch = c.x.shape()[1];
  args.classes = c.x.shape()[2];
  args.labels = c.t.shape()[1];
  args.positions = 2 * args.labels + 1;
  args.factor = c.factor;
  args.norms = c.norms.raw_data();
  args.alpha = c.alpha.raw_data();
  args.losses = c.losses.raw_data();
  args.loss = c.loss.raw_data();
  args.one_each = c.loss.ndim() == 1;
  args.gloss = c.gloss.raw_data();
  args.gx = c.gx.raw_data();
  std::vector<double> sums(size_t(args.batch)), rows(size_t(args.batch * 4 * args.positions));
  std::vector<int32_t> next(size_t(args.batch * args.labels));
  unsigned finished = 0;
  args.scratch = {sums.data(), &finished};
  args.rows = rows.data();
  args.next = next.data();
  const Float type = c.x.dtype() == Dtype::kFloat64 ? Float::kF64 : Float::kF32;
  gpu::launch_ctc(type, args, gpu::ctc_blocks(args), kLaunch);
  gpu::launch_ctc_grad(type, args, kLaunch);
}

void expect_equal_kernels(const CtcCase& c, double error) {
  kernels::ctc(cpu(), c.call());
  kernels::ctc_grad(cpu(), {c.call(), c.gloss, c.gx});
  const CtcCase other = c.with_other_results();
  run_cuda_kernels(other);
  EXPECT_NO_THROW(assert_allclose(other.losses, c.losses, error, error));
  EXPECT_NO_THROW(assert_allclose(other.loss, c.loss, error, error));
  EXPECT_NO_THROW(assert_allclose(other.gx, c.gx, error, error));
}

// More positions than threads of a block, classes that repeat, one step, no labels, and so many
// scores that all blocks share them.
TEST(CtcKernels, ComputeWhatTheCpuDoes) {
  struct Sizes {
    int64_t steps, classes, labels;
  };
  for (const Sizes& s : {Sizes{6, 4, 2}, {2, 3, 1}, {5, 3, 0}, {140, 70, 129}, {4, 22000, 2}}) {
    SCOPED_TRACE(message(s.steps, " steps, ", s.classes, " classes, ", s.labels, " labels"));
    const bool one_each = s.labels % 2 == 1;
    expect_equal_kernels(ctc_case(s.steps, s.classes, s.labels, Dtype::kFloat64, one_each), 1e-9);
    if (s.steps > 6) continue;
    expect_equal_kernels(ctc_case(s.steps, s.classes, s.labels, Dtype::kFloat32, !one_each), 2e-4);
  }
}

// The labels of sample 0 are wrong, sample 1 has too few steps.
TEST(CtcKernels, SamplesWithoutALoss) {
  for (const int64_t classes : {4, 22000}) {
    const int64_t steps = 4;
    for (const int32_t wrong : {0, int32_t(classes), -1}) {
      CtcCase c = ctc_case(steps, classes, 3, Dtype::kFloat64, true);
      c.t.assign(array(std::vector<int32_t>{1, wrong, 2, 2, 2, 3, 3, 2, 1}, {3, 3}));
      c.inputs = lengths({int32_t(steps), 3, int32_t(steps)});
      c.labels = lengths({3, 3, 3});
      kernels::ctc(cpu(), c.call());
      kernels::ctc_grad(cpu(), {c.call(), c.gloss, c.gx});
      const CtcCase other = c.with_other_results();
      run_cuda_kernels(other);
      for (const CtcCase* each : {static_cast<const CtcCase*>(&c), &other}) {
        const std::vector<double> losses = each->loss.to_vector<double>();
        EXPECT_TRUE(std::isnan(losses[0]));
        EXPECT_EQ(losses[1], std::numeric_limits<double>::infinity());
        EXPECT_TRUE(std::isfinite(losses[2]));
        const Array flows = abs(each->gx) > zeros({}, Dtype::kFloat64);
        EXPECT_FALSE(any(flows(Slice(), Slice(0, 2))).item<bool>());
        EXPECT_TRUE(all(flows(Slice(), 2)).item<bool>());
      }
    }
  }
}

// Rows that are given, one of them outside W, and rows of a tree, with an id that is not a leaf.
TEST(SampledLogisticKernels, ComputeWhatTheCpuDoes) {
  constexpr int64_t kBatch = 37, kTerms = 5, kRows = 11, kSize = 45;
  const Array begins = array(std::vector<int32_t>{0, 0, 2, 7, 7, 8}),
              paths = array(std::vector<int32_t>{0, 1, 0, 2, 3, 4, 5, 10}),
              codes = array(std::vector<int8_t>{1, -1, -1, 1, 1, -1, 1, -1}),
              leaves = array(std::vector<int32_t>{1, 2, 4}),
              t = leaves.take(random_array({kBatch}, 0, 3, Dtype::kInt32, cpu(), 6));
  const TreePaths tree{&t, &begins, &paths, &codes};
  for (const bool by_tree : {false, true}) {
    for (const bool wrong : {false, true}) {
      const Array x = random_array({kBatch, kSize}, -2, 2, Dtype::kFloat64, cpu(), 1),
                  W = random_array({kRows, kSize}, -1, 1, Dtype::kFloat64, cpu(), 2),
                  rows = random_array({kBatch, kTerms}, 0, kRows, Dtype::kInt32, cpu(), 3),
                  coefficients = zeros({kBatch, kTerms}, Dtype::kFloat64),
                  loss = zeros({}, Dtype::kFloat64), gx = zeros_like(x), gloss = full({}, 1.5),
                  gW = zeros_like(W);
      t(2).fill(wrong ? 3 : 1);
      rows(1, 4).fill(wrong ? kRows : 2);
      const Array other_rows = by_tree ? like(rows) : rows, other_coefficients = like(coefficients),
                  other_loss = like(loss), other_gx = like(gx), other_gW = like(gW),
                  other_values = zeros({kBatch, kTerms, kSize}, Dtype::kFloat64);
      kernels::sampled_logistic(cpu(),
                                {&x, &W, &rows, &coefficients, &loss, by_tree ? &tree : nullptr});
      kernels::sampled_logistic_grad(cpu(), {&x, &W, &rows, &coefficients, &gloss, &gx, &gW});
      gpu::SampledLogisticArgs args{};
      args.x = x.raw_data(), args.W = W.raw_data(), args.rows = other_rows.data<int32_t>();
      args.batch = kBatch, args.terms = kTerms, args.n = kRows, args.size = kSize;
      args.coefficients = other_coefficients.raw_data(), args.loss = other_loss.raw_data();
      if (by_tree)
        args.tree = {t.data<int32_t>(), begins.data<int32_t>(), begins.size() - 1,
                     paths.data<int32_t>(), codes.data<int8_t>()};
      args.gloss = gloss.raw_data(), args.gx = other_gx.raw_data();
      args.values = other_values.raw_data();
      std::vector<double> sums(64);
      unsigned finished = 0;
      args.scratch = {sums.data(), &finished};
      const int blocks = gpu::sampled_logistic_blocks(args, kLaunch);
      EXPECT_GT(blocks, 1);
      gpu::launch_sampled_logistic(Float::kF64, args, blocks, kLaunch);
      gpu::launch_sampled_logistic_grad(Float::kF64, args, kLaunch);
      EXPECT_EQ(std::isnan(loss.item<double>()), wrong);
      EXPECT_EQ(std::isnan(other_loss.item<double>()), wrong);
      if (!wrong) {
        EXPECT_NEAR(other_loss.item<double>(), loss.item<double>(), 1e-9);
      }
      EXPECT_EQ(testing::difference(other_rows, rows), "");
      EXPECT_NO_THROW(assert_allclose(other_coefficients, coefficients, 1e-12, 1e-12));
      EXPECT_NO_THROW(assert_allclose(other_gx, gx, 1e-12, 1e-12));
      kernels::scatter_add(
          cpu(), {other_gW.reshape({1, kRows, kSize}), other_rows.reshape({kBatch * kTerms}),
                  other_values.reshape({1, kBatch * kTerms, kSize}), false, IdRule{true, -1}});
      EXPECT_NO_THROW(assert_allclose(other_gW, gW, 1e-12, 1e-12));
    }
  }
}

// Rows that a block keeps and rows that it reads twice, in packs and one by one, several for each
// block; and columns.
TEST(CrossEntropyInPlaceKernels, ComputeWhatTheCpuDoes) {
  for (const Shape& shape : {Shape{5, 150, 1}, Shape{70, 7, 1}, Shape{3, 9, 4}})
    for (const int shared_memory : {0, 100 << 10})
      for (const int variant : {0, 1, 2, 3, 4, 5}) {
        SCOPED_TRACE(message(shape, ' ', shared_memory, ' ', variant));
        const Shape samples = {shape[0], shape[2]};
        const bool normalize = variant != 1, spreads = variant == 2 || variant == 4,
                   has_factors = variant >= 3, losses_only = variant == 5;
        const double z_loss = variant >= 3 ? 0.25 : 0;
        const Array scores = random_array(shape, -4, 4, Dtype::kFloat64, cpu(), 1),
                    t = random_array(samples, -1, double(shape[1]), Dtype::kInt32, cpu(), 2);
        scores(0, 1, 0).fill(-std::numeric_limits<double>::infinity());
        t(0, 0).fill(2);
        const Array weights = random_array(samples, 0.5, 2, Dtype::kFloat64, cpu(), 3),
                    spread = random_array({shape[1]}, 0, 1, Dtype::kFloat64, cpu(), 4),
                    total = sum(spread), gloss = full({}, 3.0),
                    each = random_array(samples, -2, 2, Dtype::kFloat64, cpu(), 6);
        if (spreads) scores(0, 1, 0).fill(-50.0);
        const Array x = scores.copy(), losses = zeros(samples), loss = zeros({}),
                    divisor = zeros({});
        CrossEntropyInPlaceCall call{x, t, -1, losses, &loss, &divisor, true, normalize, &gloss};
        if (spreads) call.weights = &weights, call.spread = &spread, call.total = &total;
        if (has_factors) call.factors = &each;
        call.z_loss = z_loss, call.losses_only = losses_only;
        kernels::softmax_cross_entropy_in_place(cpu(), call);

        const Array other_x = scores.copy(), other_losses = like(losses), other_loss = like(loss),
                    other_divisor = like(divisor);
        gpu::InPlaceArgs args{};
        args.x = other_x.raw_data(), args.t = t.data<int32_t>();
        args.outer = shape[0], args.classes = args.labels = shape[1], args.inner = shape[2];
        args.ignore_label = -1, args.normalize = normalize, args.aligned = true;
        args.losses = other_losses.raw_data(), args.loss = other_loss.raw_data();
        args.divisor = other_divisor.raw_data(), args.gloss = gloss.raw_data();
        if (spreads)
          args.weights = weights.raw_data(), args.spread = spread.raw_data(),
          args.total = total.raw_data();
        if (has_factors) args.factors = each.raw_data();
        args.z_loss = z_loss, args.losses_only = losses_only;
        gpu::launch_count_labels(Float::kF64, args, kLaunch);
        gpu::launch_cross_entropy_in_place(Float::kF64, args, shared_memory, kLaunch);
        gpu::launch_sum_losses(Float::kF64, args, kLaunch);
        EXPECT_EQ(other_divisor.item<double>(), divisor.item<double>());
        EXPECT_EQ(testing::difference(other_loss, loss, 1e-12, 1e-12), "");
        EXPECT_EQ(testing::difference(other_losses, losses, 1e-12, 1e-12), "");
        if (losses_only) {  // nothing is written
          EXPECT_EQ(testing::difference(other_x, scores), "");
          continue;
        }
        EXPECT_EQ(testing::difference(other_x, x, 1e-12, 1e-12), "");

        for (const Shape& many : {Shape{}, samples}) {
          const Array factors = random_array(many, 1, 4, Dtype::kFloat64, cpu(), 5);
          if (many.size() > 0) factors(0, 0).fill(3.0);
          kernels::scale_samples(cpu(), {x, factors, &gloss});
          gpu::ScaleSamplesArgs scale{};
          scale.x = other_x.raw_data();
          scale.outer = shape[0], scale.classes = shape[1], scale.inner = shape[2];
          scale.factors = factors.raw_data(), scale.single = many.size() == 0;
          scale.aligned = true, scale.expected = gloss.raw_data();
          gpu::launch_scale_samples(Float::kF64, scale, kLaunch);
          EXPECT_EQ(testing::difference(other_x, x, 1e-12, 1e-12), "");
        }
      }
}

}  // namespace
}  // namespace catena
