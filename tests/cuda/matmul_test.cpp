// The matmul slot on GPUs against the CPU, with whole numbers whose sums are exact.
#include "catena/array/linalg.h"

#include "catena/array/logic.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "catena/kernels/matmul.h"
#include "gpu.h"
#include "precision_scope.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);

// A matrix, or a batch of them, of the given shape whose layout in memory is one of several.
enum class Layout { kRows, kColumns, kPaddedRows, kPaddedColumns };

Array lay_out(const Array& a, Layout layout) {
  Shape shape = a.shape();
  const size_t last = shape.size() - 1;
  if (layout == Layout::kRows) return a.copy();
  if (layout == Layout::kColumns) return a.swapaxes(-1, -2).copy().swapaxes(-1, -2);
  const bool rows = layout == Layout::kPaddedRows;
  Shape padded = shape;
  if (!rows) std::swap(padded[last], padded[last - 1]);
  padded[last] += 3;
  const Array wide = zeros(padded, {a.dtype(), a.device()});
  const Array inside = wide(ellipsis, Slice(0, rows ? shape[last] : shape[last - 1]));
  const Array view = rows ? inside : inside.swapaxes(-1, -2);
  view.assign(a);
  return view;
}

struct Problem {
  int64_t m, n, k, batch;  // batch 0: 2-d
  Dtype dtype;
  Layout a, b, c;
  bool bias, relu, accumulate;

  std::string text() const {
    return message(m, "x", n, "x", k, " batch ", batch, " ", dtype, " layouts ", int(a), int(b),
                   int(c), bias ? " bias" : "", relu ? " relu" : "",
                   accumulate ? " accumulate" : "");
  }
};

void run(Device device, const Problem& p, const Array& a, const Array& b, const Array& bias,
         const Array& out) {
  MatmulCall call{&a, &b, &out};
  call.bias = p.bias ? &bias : nullptr;
  call.activation = p.relu ? Activation::kRelu : Activation::kNone;
  call.accumulate = p.accumulate;
  kernels::matmul(device, call);
}

void check(const Problem& p) {
  auto shape = [&](int64_t rows, int64_t columns) {
    return p.batch ? Shape{p.batch, rows, columns} : Shape{rows, columns};
  };
  const Array a = whole_numbers(shape(p.m, p.k), p.dtype),
              b = whole_numbers(shape(p.k, p.n), p.dtype);
  const Array start = whole_numbers(shape(p.m, p.n), p.dtype), bias = whole_numbers({p.n}, p.dtype);
  const Array expected = start.copy();
  run(cpu(), p, a, b, bias, expected);
  const Array ga = lay_out(a.to(kGpu), p.a), gb = lay_out(b.to(kGpu), p.b);
  const Array out = lay_out(start.to(kGpu), p.c);
  run(kGpu, p, ga, gb, bias.to(kGpu), out);
  // Sums are exact; 16-bit results may be rounded between the steps of the epilogue.
  if (itemsize(p.dtype) == 2 && is_float(p.dtype))
    expect_close(out, expected, rounding(p.dtype), p.text());
  else
    expect_equal(out, expected, p.text());
}

Problem random_problem(Dtype dtype, int64_t most) {
  auto layout = [] { return Layout(between(0, 3)); };
  Problem p{between(1, most),   between(1, most), between(0, most), between(0, 4),       dtype,
            layout(),           layout(),         layout(),         bool(between(0, 1)), false,
            bool(between(0, 1))};
  if (between(0, 1)) p.c = Layout::kRows;
  if (!p.accumulate && is_float(dtype)) p.relu = bool(between(0, 1));
  return p;
}

class CudaMatmul : public ::testing::TestWithParam<Dtype> {};

TEST_P(CudaMatmul, SmallProblemsOfEveryKind) {
  CATENA_NEEDS_GPUS(1);
  for (int i = 0; i < repeats(150) && !HasFatalFailure(); ++i)
    check(random_problem(GetParam(), 70));
}

TEST_P(CudaMatmul, LargerProblems) {
  CATENA_NEEDS_GPUS(1);
  for (int i = 0; i < repeats(15) && !HasFatalFailure(); ++i)
    check(random_problem(GetParam(), 400));
}

TEST_P(CudaMatmul, ThinProblems) {
  CATENA_NEEDS_GPUS(1);
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                   {1, 300, 200},
                                                                   {300, 1, 200},
                                                                   {300, 200, 1},
                                                                   {100, 10, 300},
                                                                   {64, 64, 256},
                                                                   {65, 64, 256},
                                                                   {100, 1000, 10},
                                                                   {1000, 10, 100},
                                                                   {100, 10, 1000},
                                                                   {16, 16, 1025},
                                                                   {17, 33, 0}}) {
    for (int i = 0; i < 4 && !HasFatalFailure(); ++i) {
      Problem p = random_problem(GetParam(), 2);
      p.m = m;
      p.n = n;
      p.k = k;
      check(p);
    }
  }
}

// Operands adjacent along k and a result of few rows or columns: the kernel of a block a line.
TEST(CudaMatmulThin, EveryEpilogue) {
  CATENA_NEEDS_GPUS(1);
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{100, 10, 1000},
                                                                   {1, 500, 784},
                                                                   {16, 300, 260},
                                                                   {300, 16, 4096},
                                                                   {3, 500, 1024},
                                                                   {5, 5, 256},
                                                                   {100, 4, 516}}) {
    for (int i = 0; i < 6 && !HasFatalFailure(); ++i) {
      const int epilogue = i / 2;  // none, bias and relu, accumulate
      check({m, n, k, 0, Dtype::kFloat32, Layout::kRows, Layout::kColumns,
             i % 2 ? Layout::kRows : Layout::kPaddedColumns, epilogue == 1, epilogue == 1,
             epilogue == 2});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaMatmul,
                         ::testing::Values(Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16,
                                           Dtype::kBFloat16, Dtype::kInt8, Dtype::kUInt8,
                                           Dtype::kInt16, Dtype::kInt32, Dtype::kUInt32,
                                           Dtype::kInt64, Dtype::kBool),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(CudaMatmulPrecision, IsAsConfigured) {
  CATENA_NEEDS_GPUS(1);
  const Array a = real_numbers({256, 512}, Dtype::kFloat32),
              b = real_numbers({512, 384}, Dtype::kFloat32);
  const Array exact = matmul(a.astype(Dtype::kFloat64), b.astype(Dtype::kFloat64));
  auto error = [&](Precision precision) {
    const PrecisionScope scope(precision);
    const std::vector<double> x = matmul(a.to(kGpu), b.to(kGpu)).to_vector<double>(),
                              y = exact.to_vector<double>();
    double most = 0;
    for (size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
    return most;
  };
  const double full = error(Precision::kFloat32), tf32 = error(Precision::kTf32),
               bf16 = error(Precision::kBf16);
  EXPECT_LT(full, 1e-3);
  EXPECT_GT(tf32, 4 * full);  // otherwise the setting did nothing
  EXPECT_LT(tf32, 0.3);
  EXPECT_LT(bf16, 2.0);
}

// Sums of whole numbers that float holds: parts of them rounded to 16 bits would be seen.
TEST(CudaMatmulPrecision, SixteenBitResultsRoundOnce) {
  CATENA_NEEDS_GPUS(1);
  for (const Dtype d : {Dtype::kBFloat16, Dtype::kFloat16}) {
    const int most = d == Dtype::kBFloat16 ? 200 : 15;
    for (const int64_t m : {1, 9, 64}) {
      for (const int64_t n : {1, 12, 48}) {
        for (const int64_t k : {2, 12, 63, 200, 1024}) {
          const Array a = whole_numbers({m, k}, d, -most, most),
                      b = whole_numbers({k, n}, d, -most, most);
          expect_equal(matmul(a.to(kGpu), b.to(kGpu)), matmul(a, b),
                       message(d, " ", m, "x", k, " times ", k, "x", n));
        }
      }
    }
  }
}

// By each provider that takes them; sums of whole numbers that float holds and 16 bits do not.
TEST(CudaMatmulWide, SixteenBitOperandsOfAFloat32Result) {
  CATENA_NEEDS_GPUS(1);
  for (const char* rules : {"", "cublaslt:off"}) {
    const ProviderScope scope(rules);
    for (const Dtype d : {Dtype::kFloat16, Dtype::kBFloat16})
      for (const Layout layout : {Layout::kRows, Layout::kColumns, Layout::kPaddedColumns})
        for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
                 {1, 1, 1}, {5, 7, 0}, {30, 16, 300}, {300, 128, 64}, {16, 300, 1024}})
          for (const bool accumulate : {false, true}) {
            const Array a = whole_numbers({m, k}, d, -15, 15),
                        b = whole_numbers({k, n}, d, -15, 15),
                        start = whole_numbers({m, n}, Dtype::kFloat32, -9999, 9999);
            const Array expected = start.copy();
            kernels::matmul(cpu(0),
                            {.a = &a, .b = &b, .output = &expected, .accumulate = accumulate});
            const Array ga = lay_out(a.to(kGpu), layout), gb = lay_out(b.to(kGpu), Layout::kRows),
                        out = lay_out(start.to(kGpu), layout);
            kernels::matmul(kGpu, {.a = &ga, .b = &gb, .output = &out, .accumulate = accumulate});
            expect_equal(out, expected,
                         message(rules, " ", d, " ", m, "x", k, "x", n, " layout ", int(layout),
                                 accumulate ? " accumulate" : ""));
          }
  }
}

TEST(CudaMatmulBroadcast, OneMatrixForTheWholeBatch) {
  CATENA_NEEDS_GPUS(1);
  const Array a = whole_numbers({5, 30, 300}, Dtype::kFloat32),
              b = whole_numbers({300, 90}, Dtype::kFloat32);
  const Array wide = b.to(kGpu).broadcast_to({5, 300, 90});
  const Array out = empty({5, 30, 90}, {Dtype::kFloat32, kGpu});
  const Array ga = a.to(kGpu);
  kernels::matmul(kGpu, MatmulCall{&ga, &wide, &out});
  for (int i = 0; i < 5; ++i) expect_equal(out[i], matmul(a[i], b), "batch element");
}

TEST(CudaMatmulCapture, ChoosesAsTheEagerStep) {
  CATENA_NEEDS_GPUS(1);
  const Array a = real_numbers({100, 1000}, Dtype::kFloat32).to(kGpu),
              b = real_numbers({1000, 600}, Dtype::kFloat32).to(kGpu);
  const Array eager = matmul(a, b), out = zeros({100, 600}, {Dtype::kFloat32, kGpu});
  cuda::Graph graph = cuda::Graph::capture(kGpu, [&] {
    kernels::matmul(kGpu, MatmulCall{&a, &b, &out});
  });
  graph.launch();
  expect_equal(out, eager, "replayed product");
}

// More tiles side by side than a grid has rows.
TEST(CudaMatmul, MoreThanAMillionColumns) {
  CATENA_NEEDS_GPUS(1);
  const int64_t n = 1'100'000;
  const Array a = arange(6, {dtype::int32, kGpu}).reshape({2, 3});
  const Array b = arange(3 * n, {dtype::int32, kGpu}).reshape({3, n});
  EXPECT_TRUE(array_equal(matmul(a, b).to(cpu(0)), matmul(a.to(cpu(0)), b.to(cpu(0)))));
}

}  // namespace
}  // namespace catena
