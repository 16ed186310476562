// Large products of odd extents, distances and addresses on GPUs, which go by way of copies,
// against float64.
#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "catena/kernels/matmul.h"
#include "deterministic_scope.h"
#include "gpu.h"
#include "precision_scope.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);
constexpr double kAround = 77;  // what memory beside a matrix holds

struct Problem {
  int64_t m, n, k;
  int64_t batch = 0;  // 0: 2-d
  // Whether the operand's columns lie along memory.
  bool a_columns = false, b_columns = false, c_columns = false;
  int64_t apart = 0, offset = 0;  // elements behind each line in memory, and before the first
  bool bias = false, relu = false, accumulate = false, wide = false;

  std::string text(Dtype dtype) const {
    return message(dtype, " ", m, " x ", n, " x ", k, " batch ", batch, " columns ", a_columns,
                   b_columns, c_columns, " apart ", apart, " offset ", offset, bias ? " bias" : "",
                   relu ? " relu" : "", accumulate ? " accumulate" : "", wide ? " wide" : "");
  }
};

// A matrix, or several, and the memory around it.
struct Placed {
  Array memory, matrix;
};

Placed placed(const Problem& p, int64_t rows, int64_t columns, bool by_columns, Dtype dtype) {
  const int64_t line = by_columns ? rows : columns, lines = by_columns ? columns : rows,
                step = line + p.apart, count = std::max<int64_t>(p.batch, 1) * lines * step;
  const Array memory = full({p.offset + count}, kAround, {dtype, kGpu});
  const Array inside = memory(Slice(p.offset, p.offset + count));
  const Array all =
      p.batch > 0 ? inside.reshape({p.batch, lines, step}) : inside.reshape({lines, step});
  const Array cut = all(ellipsis, Slice(0, line));
  return {memory, by_columns ? cut.swapaxes(-1, -2) : cut};
}

void draw(const Array& a) {
  const DeviceScope scope(kGpu);
  const Array numbers = random::uniform(a.shape(), -1, 1, Dtype::kFloat32);
  a.assign(numbers.astype(a.dtype()));
}

Array wide(const Array& a) { return a.astype(Dtype::kFloat64); }

struct Tolerance {
  double relative, absolute;
};
// Of sums of so many terms below 1, which are larger than most sums.
Tolerance tolerance_of(Dtype result, Dtype operands, int64_t terms) {
  const double of_many = std::sqrt(double(terms) / 1000);
  if (result == Dtype::kBFloat16) return {0x1p-7, 1e-2 * of_many};
  if (result == Dtype::kFloat16) return {0x1p-10, 5e-3 * of_many};
  return operands == Dtype::kFloat32 ? Tolerance{0x1p-10, 4e-2 * of_many}
                                     : Tolerance{1e-5, 1e-3 * of_many};
}

struct Operands {
  Placed a, b, c;
  Array bias, expected;

  MatmulCall call(const Problem& p) const {
    MatmulCall call{&a.matrix, &b.matrix, &c.matrix};
    if (p.bias) call.bias = &bias;
    call.activation = p.relu ? Activation::kRelu : Activation::kNone;
    call.accumulate = p.accumulate;
    return call;
  }
};

Operands operands_of(const Problem& p, Dtype dtype) {
  Operands o{placed(p, p.m, p.k, p.a_columns, dtype), placed(p, p.k, p.n, p.b_columns, dtype),
             placed(p, p.m, p.n, p.c_columns, p.wide ? Dtype::kFloat32 : dtype),
             empty({p.n}, {dtype, kGpu}), Array()};
  for (const Array& x : {o.a.matrix, o.b.matrix, o.c.matrix, o.bias}) draw(x);
  o.expected = matmul(wide(o.a.matrix), wide(o.b.matrix));
  if (p.bias) o.expected = o.expected + wide(o.bias);
  if (p.relu) o.expected = maximum(o.expected, 0.0);
  if (p.accumulate) o.expected = o.expected + wide(o.c.matrix);
  return o;
}

// The largest difference beyond what rounding explains.
double excess(const Array& actual, const Array& expected, const Tolerance& t) {
  return amax(abs(wide(actual) - expected) - (abs(expected) * t.relative + t.absolute))
      .item<double>();
}

void check(const Problem& p, Dtype dtype) {
  SCOPED_TRACE(p.text(dtype));
  const Operands o = operands_of(p, dtype);
  kernels::matmul(kGpu, o.call(p));
  EXPECT_LE(excess(o.c.matrix, o.expected, tolerance_of(o.c.matrix.dtype(), dtype, p.k)), 0);
  o.c.matrix.fill(kAround);
  EXPECT_TRUE(all(equal(o.c.memory, kAround)).item<bool>()) << "memory beside the result";
}

class CudaOddMatmul : public ::testing::TestWithParam<Dtype> {
  const PrecisionScope precision_{Precision::kTf32};
  const DeterministicScope deterministic_{true};  // no choice among algorithms, which takes long
  const size_t workspace_ = config().max_workspace_size;

 protected:
  ~CudaOddMatmul() override { config().max_workspace_size = workspace_; }
};

// Large enough for copies in tf32, to and fro where the product is added to the result.
constexpr int64_t kM = 1800, kN = 1760, kK = 1704;

// Whether a, b and the result are transposed, as three bits.
Problem of_layout(const Problem& p, int layout) {
  Problem result = p;
  result.a_columns = layout & 1, result.b_columns = layout & 2, result.c_columns = layout & 4;
  return result;
}

TEST_P(CudaOddMatmul, EveryRemainderInEveryLayout) {
  CATENA_NEEDS_GPUS(1);
  for (int layout = 0; layout < 8; ++layout)
    for (int64_t r = 1; r < 8 && !HasFailure(); ++r)
      check(of_layout({kM + r, kN + r * 3 % 8, kK + r * 5 % 8}, layout), GetParam());
}

TEST_P(CudaOddMatmul, OneOddExtent) {
  CATENA_NEEDS_GPUS(1);
  for (int layout = 0; layout < 8; ++layout)
    for (const int64_t r : {1, 4, 6}) {
      check(of_layout({kM + r, kN, kK}, layout), GetParam());
      check(of_layout({kM, kN + r, kK}, layout), GetParam());
      check(of_layout({kM, kN, kK + r}, layout), GetParam());
    }
}

// Extents odd or not; distances odd, or such that rows begin at whole packs though they do not end
// at them.
TEST_P(CudaOddMatmul, DistancesAndAddresses) {
  CATENA_NEEDS_GPUS(1);
  for (int layout = 0; layout < 8; ++layout)
    for (const int64_t r : {0, 1, 3}) {
      Problem p = of_layout({kM + r, kN + r, kK + r}, layout);
      for (const auto& [apart, offset] :
           {std::pair<int64_t, int64_t>{1, 0}, {0, 1}, {8 - r, 0}, {8 - r, 2}}) {
        p.apart = apart, p.offset = offset;
        check(p, GetParam());
      }
    }
}

TEST_P(CudaOddMatmul, EveryEpilogue) {
  CATENA_NEEDS_GPUS(1);
  for (int layout = 0; layout < 8; ++layout)
    for (const int64_t apart : {0, 1, 7}) {
      Problem p = of_layout({kM + 1, kN + 1, kK + 1}, layout);
      p.apart = apart;
      p.bias = true;
      check(p, GetParam());
      p.relu = true;
      check(p, GetParam());
      p.bias = false;
      check(p, GetParam());
      p.relu = false, p.accumulate = true;
      check(p, GetParam());
    }
}

TEST_P(CudaOddMatmul, WideResults) {
  CATENA_NEEDS_GPUS(1);
  if (itemsize(GetParam()) > 2) GTEST_SKIP() << "results of 16-bit operands";
  for (int layout = 0; layout < 8; ++layout)
    for (const bool accumulate : {false, true}) {
      Problem p = of_layout({kM + 1, kN + 3, kK + 5}, layout);
      p.wide = true, p.accumulate = accumulate;
      check(p, GetParam());
      p.m = kM, p.n = kN + 2;
      check(p, GetParam());
    }
}

TEST_P(CudaOddMatmul, Batches) {
  CATENA_NEEDS_GPUS(1);
  for (int layout = 0; layout < 8; ++layout)
    for (const bool accumulate : {false, true}) {
      Problem p = of_layout({1537, 1535, 1543, 3}, layout);
      p.accumulate = accumulate;
      check(p, GetParam());
    }
}

TEST_P(CudaOddMatmul, OneMatrixForTheWholeBatch) {
  CATENA_NEEDS_GPUS(1);
  const Problem p{1537, 1535, 1543, 3};
  const Operands o = operands_of(p, GetParam());
  for (const bool first : {false, true}) {
    const auto same = [](const Array& x) { return x[0].broadcast_to(x.shape()); };
    const Array a = first ? same(o.a.matrix) : o.a.matrix,
                b = first ? o.b.matrix : same(o.b.matrix);
    kernels::matmul(kGpu, MatmulCall{&a, &b, &o.c.matrix});
    EXPECT_LE(
        excess(o.c.matrix, matmul(wide(a), wide(b)), tolerance_of(GetParam(), GetParam(), p.k)), 0);
  }
}

// Scratch memory holds a part of the columns, or of the matrices.
TEST_P(CudaOddMatmul, ResultsInParts) {
  CATENA_NEEDS_GPUS(1);
  config().max_workspace_size = 20000000 * itemsize(GetParam());
  for (const Problem& p : {Problem{8001, 1537, 1537},
                           {1537, 8001, 1537, 0, false, false, true},
                           {8001, 769, 2305, 0, true},
                           {8001, 768, 5377, 0, true},
                           {1025, 1281, 3073, 5},
                           {8001, 1537, 1537, 2}})
    for (const bool accumulate : {false, true}) {
      Problem problem = p;
      problem.accumulate = accumulate;
      check(problem, GetParam());
    }
}

TEST_P(CudaOddMatmul, GivesEqualBitsAndInAGraphToo) {
  CATENA_NEEDS_GPUS(1);
  for (const bool deterministic : {false, true}) {
    const DeterministicScope scope(deterministic);
    const Problem p{kM + 1, kN + 1, kK + 1};
    const Operands o = operands_of(p, GetParam());
    kernels::matmul(kGpu, o.call(p));
    const Array first = o.c.matrix.copy();
    for (int i = 0; i < 3; ++i) {
      o.c.matrix.fill(0);
      kernels::matmul(kGpu, o.call(p));
      expect_equal(o.c.matrix, first, "again");
    }
    o.c.matrix.fill(0);
    cuda::Graph graph = cuda::Graph::capture(kGpu, [&] { kernels::matmul(kGpu, o.call(p)); });
    graph.launch();
    expect_equal(o.c.matrix, first, "replayed");
  }
}

// What is no number stays in its row and column.
TEST_P(CudaOddMatmul, NoNumbersSpreadBeyondTheirRowsAndColumns) {
  CATENA_NEEDS_GPUS(1);
  const Problem p{kM + 1, kN + 1, kK + 1};
  const Operands o = operands_of(p, GetParam());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  o.a.matrix(kM, kK).fill(nan);
  o.b.matrix(kK, kN).fill(nan);
  kernels::matmul(kGpu, o.call(p));
  const Array bad = isnan(o.c.matrix);
  EXPECT_EQ(sum(bad.astype(Dtype::kInt64)).item<int64_t>(), p.m + p.n - 1);
  EXPECT_TRUE(all(bad(kM, Slice())).item<bool>());
  EXPECT_TRUE(all(bad(Slice(), kN)).item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaOddMatmul,
                         ::testing::Values(Dtype::kBFloat16, Dtype::kFloat16, Dtype::kFloat32),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace catena
