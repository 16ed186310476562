// Synthesised element-wise kernels on a GPU against the CPU: every operation, dtype and layout.
#include <functional>

#include "catena/array/elementwise.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/kernels/elementwise_ops.h"
#include "gpu.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);

// Operations whose results are equal bit for bit on all devices in every dtype.
bool is_exact(ElementwiseOp op, Dtype d) {
  if (!is_float(d) || info(op).form == OpForm::kTest) return true;
  for (const char* name : {"add",           "subtract",
                           "multiply",      "divide",
                           "negative",      "positive",
                           "absolute",      "square",
                           "sign",          "sqrt",
                           "reciprocal",    "maximum",
                           "minimum",       "fmax",
                           "fmin",          "rint",
                           "floor",         "ceil",
                           "trunc",         "clip",
                           "where",         "relu",
                           "relu_grad",     "copysign",
                           "maximum_grad",  "maximum_grad_rhs",
                           "absolute_grad", "sigmoid_grad"}) {
    if (std::string_view(name) == info(op).name) return true;
  }
  return false;
}

// Samples in the operation's range; integers whole.
Array samples(ElementwiseOp op, int operand, Dtype d, const Shape& shape) {
  const ElementwiseInfo& row = info(op);
  const Dtype dtype = operand_dtype(op, operand, d);
  if (is_float(dtype)) return real_numbers(shape, dtype, row.low, row.high);
  return whole_numbers(shape, dtype, int(std::ceil(row.low)), int(row.high));
}

Array run_op(ElementwiseOp op, const std::vector<Array>& x) {
  switch (x.size()) {
    case 1: return elementwise(op, {x[0]});
    case 2: return elementwise(op, {x[0], x[1]});
    default: return elementwise(op, {x[0], x[1], x[2]});
  }
}

// A layout makes operand k's view out of a base array of a shape it chooses.
struct Layout {
  const char* name;
  std::function<Shape(int)> base;
  std::function<Array(int, const Array&)> view;
};
const std::vector<Layout>& layouts() {
  const auto whole = [](int, const Array& a) { return a; };
  static const std::vector<Layout> all = {
      {"contiguous", [](int) { return Shape{3001}; }, whole},
      {"0-d", [](int) { return Shape{}; }, whole},
      {"empty",
       [](int) {
         return Shape{0, 3};
       },
       whole},
      {"misaligned alike", [](int) { return Shape{3010}; },
       [](int, const Array& a) { return a(Slice(3, none)); }},
      {"misaligned", [](int) { return Shape{3010}; },
       [](int k, const Array& a) { return a(Slice(k, 3000 + k)); }},
      {"row",
       [](int k) {
         return k == 0 ? Shape{37, 132} : Shape{132};
       },
       whole},
      {"column",
       [](int k) {
         return k == 1 ? Shape{37, 1} : Shape{37, 131};
       },
       whole},
      {"padded rows",
       [](int) {
         return Shape{37, 140};
       },
       [](int, const Array& a) { return a(ellipsis, Slice(0, 128)); }},
      {"transposed",
       [](int k) {
         return k == 0 ? Shape{70, 90} : Shape{90, 70};
       },
       [](int k, const Array& a) { return k == 0 ? a.T() : a; }},
      {"batch transposed",
       [](int k) {
         return k == 1 ? Shape{3, 70, 40} : Shape{3, 40, 70};
       },
       [](int k, const Array& a) { return k == 1 ? a.swapaxes(1, 2) : a; }},
      {"every second",
       [](int) {
         return Shape{50, 60};
       },
       [](int k, const Array& a) {
         return k == 0 ? a(ellipsis, Slice(0, none, 2)) : a(ellipsis, Slice(none, none, -2));
       }},
      {"single", [](int k) { return k == 1 ? Shape{} : Shape{3001}; }, whole},
  };
  return all;
}

class CudaElementwise : public ::testing::TestWithParam<ElementwiseOp> {};

TEST_P(CudaElementwise, EqualsTheCpu) {
  CATENA_NEEDS_GPUS(1);
  const ElementwiseOp op = GetParam();
  for (int d = 0; d < kDtypeCount; ++d) {
    if (!computes_in(op, Dtype(d))) continue;
    for (const Layout& layout : layouts()) {
      std::vector<Array> host, device;
      for (int k = 0; k < info(op).inputs; ++k) {
        const Array base = samples(op, k, Dtype(d), layout.base(k));
        host.push_back(layout.view(k, base));
        device.push_back(layout.view(k, base.to(kGpu)));
      }
      const std::string what = message(info(op).name, " ", Dtype(d), " ", layout.name);
      const Array expected = run_op(op, host), actual = run_op(op, device);
      ASSERT_EQ(actual.dtype(), expected.dtype()) << what;
      expect_close(actual, expected, is_exact(op, Dtype(d)) ? 0 : rounding(expected.dtype()), what);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CudaElementwise, HostNumbersEqualTheCpu) {
  CATENA_NEEDS_GPUS(1);
  const ElementwiseOp op = GetParam();
  if (info(op).inputs != 2)
    GTEST_SKIP() << info(op).name << " has " << info(op).inputs << " operands";
  for (int d = 0; d < kDtypeCount; ++d) {
    if (!computes_in(op, Dtype(d))) continue;
    const Array x = samples(op, 0, Dtype(d), {50, 41});
    const Scalar number = Dtype(d) == Dtype::kBool ? Scalar(true) : Scalar(1);
    const std::string what = message(info(op).name, " ", Dtype(d), " with a number");
    const double tolerance = is_exact(op, Dtype(d)) ? 0 : rounding(Dtype(d));
    expect_close(elementwise(op, {x.to(kGpu), number}), elementwise(op, {x, number}), tolerance,
                 what);
    expect_close(elementwise(op, {number, x.to(kGpu).T()}), elementwise(op, {number, x.T()}),
                 tolerance, what);
    if (HasFatalFailure()) return;
  }
}

std::string op_name(const ::testing::TestParamInfo<ElementwiseOp>& test) {
  return info(test.param).name;
}
INSTANTIATE_TEST_SUITE_P(Ops, CudaElementwise, ::testing::ValuesIn(elementwise_ops()), op_name);

TEST(CudaJit, MixedDtypesCastThenFuse) {
  CATENA_NEEDS_GPUS(1);
  // Five times: the first uses insert casts, the later ones may run the fused kernel.
  for (int a = 0; a < kDtypeCount; ++a) {
    for (int b = 0; b < kDtypeCount; ++b) {
      if ((a * 5 + b) % 4 != 0) continue;
      const Array x = whole_numbers({40, 50}, Dtype(a)), y = whole_numbers({40, 50}, Dtype(b));
      const Array expected = add(x, y), gx = x.to(kGpu), gy = y.to(kGpu);
      for (int i = 0; i < 5; ++i)
        expect_equal(add(gx, gy), expected, message("add ", Dtype(a), " ", Dtype(b), " time ", i));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(CudaJit, ResultsAreCastOnStore) {
  CATENA_NEEDS_GPUS(1);
  const Array x = real_numbers({1000}, Dtype::kFloat16), gx = x.to(kGpu);
  for (const Dtype d : {Dtype::kFloat32, Dtype::kFloat64}) {
    const Array expected = empty({1000}, d), actual = empty({1000}, {d, kGpu});
    for (int i = 0; i < 5; ++i) {
      elementwise(ops::multiply, {x, x}, expected);
      elementwise(ops::multiply, {gx, gx}, actual);
      expect_equal(actual, expected, message("float16 product stored as ", d));
    }
  }
}

// Zeros are divided in a way of their own: signs, infinities, NaN and denormals come out as on the
// CPU.
TEST(CudaJit, QuotientsOfEdges) {
  CATENA_NEEDS_GPUS(1);
  for (const Dtype d : {Dtype::kFloat32, Dtype::kFloat64}) {
    const double tiny = d == Dtype::kFloat32 ? 0x1p-149 : 0x1p-1074,
                 huge = d == Dtype::kFloat32 ? 0x1p127 : 0x1p1023, inf = INFINITY;
    const std::vector<double> edges = {0.0, -0.0, 1.0,          -3.0,    tiny,     -tiny, huge,
                                       inf, -inf, std::nan(""), 0x1p-64, 0x1p-126, -huge, 0.5};
    const Array x = array(edges).astype(d), a = x.reshape({-1, 1});
    const Array host = a / x, device = a.to(kGpu) / x.to(kGpu);
    expect_equal(device, host, message("quotients of ", d));
    const auto signs = [&](const Array& q) { return signbit(where(isnan(q), 0.0, q)); };
    expect_equal(signs(device), signs(host), message("their signs, ", d));
  }
}

TEST(CudaJit, InPlace) {
  CATENA_NEEDS_GPUS(1);
  const Array x = real_numbers({500, 33}, Dtype::kFloat32), g = x.to(kGpu);
  const Array expected = add(x, x);
  elementwise(ops::add, {g, g}, g);
  expect_equal(g, expected, "x += x");
  const Array t = x.copy().to(kGpu);
  elementwise(ops::add, {t.T(), t.T()}, t.T());
  expect_equal(t, expected, "x.T += x.T");
}

TEST(CudaJit, ManyDimensions) {
  CATENA_NEEDS_GPUS(1);
  const Shape shape{2, 3, 2, 2, 3, 2, 2, 2, 3, 2};
  const Array x = whole_numbers(shape, Dtype::kFloat32), y = whole_numbers({3, 1}, Dtype::kFloat32);
  expect_equal(add(x.to(kGpu).T(), y.to(kGpu)), add(x.T(), y), "10-d");
}

}  // namespace
}  // namespace catena
