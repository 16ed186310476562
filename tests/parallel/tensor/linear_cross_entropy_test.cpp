// The vocabulary-parallel linear_cross_entropy against that of one rank: values and gradients.
#include "catena/parallel/tensor/linear_cross_entropy.h"

#include <cmath>
#include <limits>

#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/autograd/autocast.h"
#include "catena/autograd/mean.h"
#include "catena/functions/math.h"
#include "catena/parallel/tensor/functions.h"
#include "cuda/gpu.h"
#include "parallel/tensor/linear_loss.h"

namespace catena::parallel::tensor_loss {
namespace {

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

// The loss is that of one rank; gradients of h and W are rounded to 16 bits.
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
