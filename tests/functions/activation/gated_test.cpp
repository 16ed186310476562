// Gated activations beyond their records: memory orders, rows in several pieces, values that do not
// depend on their position, special numbers, and one rounding of 16-bit floats.
#include "catena/functions/activation/gated.h"

#include <limits>

#include "catena/array/indexing.h"
#include "catena/functions/activation/elementwise.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Gated : public OnDevice {};

TEST_P(Gated, KeepTheMemoryOrder) {
  const Array gate = draw({3, 4, 5}).transpose({2, 0, 1}), x = draw({5, 3, 4});
  const Variable g(gate), other(x), y = F::swiglu(g, other);
  EXPECT_EQ(y.data().order(), gate.order());
  F::sum(y).backward();
  EXPECT_EQ(g.grad().order(), gate.order());
  const Variable packed(draw({6, 4}).transpose());
  EXPECT_EQ(F::swiglu(packed).data().order(), packed.data().order());
}

// Of more than one piece, with rows that are not multiples of a vector.
TEST_P(Gated, TakeLongRows) {
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32, Dtype::kBFloat16}) {
    const Array both = draw({3, 2 * 9001}, -4, 4, 1, dtype);
    const Array gate = both(Slice(), Slice(0, 9001)), x = both(Slice(), Slice(9001, none));
    const double error = dtype == Dtype::kBFloat16 ? 8e-3 : 1e-6;
    const Array expected = F::gelu(gate.astype(Dtype::kFloat64)).data() * x.astype(Dtype::kFloat64);
    assert_allclose(F::geglu(both).data(), expected, error, error);
    assert_allclose(F::geglu(gate, x).data(), expected, error, error);
  }
}

TEST_P(Gated, DoNotDependOnThePosition) {
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
    const Array gate = draw({41}, -9, 9, 1, dtype), x = draw({41}, -2, 2, 2, dtype);
    for (const auto f :
         {static_cast<Variable (*)(const VariableOperand&, const VariableOperand&)>(&F::swiglu),
          &F::geglu, &F::geglu_tanh}) {
      const Array y = f(gate, x).data();
      for (const int64_t first : {1, 7, 30}) {
        const Array part = f(gate(Slice(first, none)).copy(), x(Slice(first, none)).copy()).data();
        testing::assert_array_equal(part, y(Slice(first, none)));
      }
    }
  }
}

TEST_P(Gated, SpecialNumbers) {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
    const Array gate = array({inf, nan, -1000.0, 1000.0, 0.0}).astype(dtype).to(device());
    const Variable g(gate), x(full({5}, 2.0, {dtype, device()}));
    const Variable y = F::swiglu(g, x);
    EXPECT_EQ(y.data().to_cpu().to_string(), "[  inf   nan   -0. 2000.    0.]");
    F::sum(y).backward();
    EXPECT_EQ(x.grad()(4).item<double>(), 0);
    EXPECT_EQ(g.grad()(3).item<double>(), 2);
    EXPECT_EQ(g.grad()(2).item<double>(), 0);
    EXPECT_EQ(g.grad()(4).item<double>(), 1);
  }
}

// Closer to the exact number than two roundings are.
TEST_P(Gated, RoundOnce) {
  const Array gate = draw({4096}, -4, 4, 1, Dtype::kBFloat16),
              x = draw({4096}, -4, 4, 2, Dtype::kBFloat16);
  const Array g = gate.astype(Dtype::kFloat64),
              exact = F::silu(g).data() * x.astype(Dtype::kFloat64);
  const auto is_rounded_once = [&](const Variable& y) {
    const Array error = absolute(y.data().astype(Dtype::kFloat64) - exact);
    return all(error <= absolute(exact) * 0x1.02p-8).truth();
  };
  EXPECT_TRUE(is_rounded_once(F::swiglu(gate, x)));
  EXPECT_FALSE(is_rounded_once(F::silu(gate) * x));
}

CATENA_ON_DEVICES(Gated);

}  // namespace
}  // namespace catena
