// What the records of the functions that rearrange arrays do not say.
#include "catena/functions/array.h"

#include "catena/autograd/function_node.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class ArrayFunctions : public OnDevice {};

TEST_P(ArrayFunctions, TheGradientOfSumIsExact) {
  const Variable x(draw({3, 2}));
  const Variable y = F::sum(x);
  y.set_grad(full({}, 2.5, {Dtype::kFloat64, device()}));
  y.backward();
  EXPECT_EQ(testing::difference(x.grad(), full({3, 2}, 2.5, {Dtype::kFloat64, device()})), "");
}

TEST_P(ArrayFunctions, ViewsShareTheMemory) {
  const Variable x(draw({4, 3, 2}));
  for (const Variable& y :
       {F::reshape(x, {24}), F::transpose(x), F::swapaxes(x, 0, 1), F::expand_dims(x, 0),
        F::get_item(x, {Slice(1, 3)}), F::broadcast_to(x, {5, 4, 3, 2}), F::split_axis(x, 2, 0)[1]})
    EXPECT_TRUE(y.data().shares_memory_with(x.data()));
  EXPECT_THROW(F::get_item(x, {7}), IndexError);
}

TEST_P(ArrayFunctions, CastKeepsTheGradientsDtype) {
  const Variable x(draw({2, 3}, -1, 1, 0, Dtype::kFloat32));
  const Variable y = F::cast(x, Dtype::kFloat64);
  EXPECT_EQ(y.dtype(), Dtype::kFloat64);
  y.set_grad(ones_like(y.data()));
  y.backward();
  EXPECT_EQ(x.grad().dtype(), Dtype::kFloat32);
  EXPECT_TRUE(same_variable(F::cast(x, Dtype::kFloat32), x));
  EXPECT_FALSE(F::cast(x, Dtype::kInt32).creator());
}

TEST_P(ArrayFunctions, CopyMovesGradientsBack) {
  for (Device other : testing::devices()) {
    const Array gy = draw({10, 5}, -1, 1, 5).to(other);
    const Variable x(draw({10, 5}));
    const Variable y = F::copy(x, other);
    EXPECT_EQ(y.device(), other);
    EXPECT_NO_THROW(assert_allclose(y.data(), x.data(), 0, 0));
    y.set_grad(gy);
    y.backward();
    EXPECT_EQ(x.grad().device(), device());
    EXPECT_NO_THROW(assert_allclose(x.grad(), gy, 0, 0));
    expect_gradients(
        [&](const Variable& v) { return F::copy(F::exp(F::copy(v * v, other)), device()); },
        draw({2, 3}), "copy");
  }
}

CATENA_ON_DEVICES(ArrayFunctions);

}  // namespace
}  // namespace catena
