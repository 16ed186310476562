// What Chainer's tutorial does with functions; the names are those of the inventory's rows.
#include "functions_test_util.h"

namespace catena {
namespace {

class FunctionTutorial : public OnDevice {};
CATENA_ON_DEVICES(FunctionTutorial);

// x and its gradient on the test's device, the numerical one computed there and compared on the
// host: assert_allclose mixes devices.
TEST_P(FunctionTutorial, TUT_25_ReluAgainstNumericalGradients) {
  const Variable x(draw({3, 2}, -1, 1, 5, Dtype::kFloat32));
  const Variable y = F::relu(x);
  y.set_grad(draw({3, 2}, -1, 1, 6, Dtype::kFloat32));
  y.backward();
  const auto f = [&] { return Arrays{F::relu(x.data()).data()}; };
  const Arrays gx = numerical_grad(f, {x.data()}, {y.grad()}, 1e-3);
  EXPECT_EQ(gx[0].device(), device());
  EXPECT_NO_THROW(assert_allclose(gx[0].to(cpu(0)), x.grad(), 1e-3, 1e-3));
}

}  // namespace
}  // namespace catena
