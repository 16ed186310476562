// Operands of a linear_cross_entropy over ranks, whole and as this rank has them, and what one rank
// makes of them.
#pragma once

#include <numeric>

#include "catena/parallel/tensor/linear_cross_entropy.h"
#include "catena/parallel/tensor/placement.h"
#include "parallel/tensor/ranks.h"

namespace catena::parallel::tensor_loss {

using namespace testing;  // NOLINT: waves and ranks
using F::Reduction;
using Options = F::LinearCrossEntropyOptions;

constexpr int64_t kTokens = 13, kSize = 6, kClasses = 10;

// Rows of W of each rank; with four, one has none.
inline std::vector<int64_t> rows_over(int ranks) {
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
inline Array labels_of(int64_t tokens) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < tokens; ++i)
    labels.push_back(i % 5 == 3 ? -1 : int32_t(i * 7 % kClasses));
  return array(labels, {tokens}, cpu(0));
}

inline Problem problem(Dtype dtype, double offset = 0) {
  return {wave({kTokens, kSize}, 1, dtype), wave({kClasses, kSize}, 2, dtype),
          (wave({kClasses}, 3, dtype::float64) + offset).astype(dtype), labels_of(kTokens)};
}

// Whole gradients of h; of W and b those of all ranks.
struct Outcome {
  Array loss, h, W, b;
};

// A gradient of a loss.
inline const Array kOne = ones({}, {dtype::float64, cpu(0)});

// With gradients from gy on.
inline Outcome one_rank(const Problem& p, const Array& gy, const Options& options) {
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
inline Array own_rows(const Array& whole, const Communicator& comm) {
  const std::vector<int64_t> rows = rows_over(comm.size());
  const int64_t begin = std::accumulate(rows.begin(), rows.begin() + comm.rank(), int64_t{0});
  return whole(Slice(begin, begin + rows[size_t(comm.rank())]));
}

inline void expect_outcome(Communicator& comm, const Share& got, const Variable& loss,
                           const Outcome& expected, double tolerance) {
  expect_whole(comm, loss.data(), "loss");
  expect_whole(comm, got.h.grad(), "gradient of h");
  expect_close(loss.data().to(cpu(0)), expected.loss, "loss", tolerance);
  expect_close(got.h.grad().to(cpu(0)), expected.h, "gradient of h", tolerance);
  expect_close(got.W.grad().to(cpu(0)), own_rows(expected.W, comm), "gradient of W", tolerance);
  expect_close(got.b.grad().to(cpu(0)), own_rows(expected.b, comm), "gradient of b", tolerance);
}

}  // namespace catena::parallel::tensor_loss
