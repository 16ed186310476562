// What the record of dropout does not say: how much is dropped, and when nothing is.
#include "catena/functions/noise/dropout.h"

#include "catena/functions/noise.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class DropoutFunction : public OnDevice {};

TEST_P(DropoutFunction, KeepsOrScales) {
  random::seed(5);
  const Variable x(draw({50, 40}, 1, 2));
  const Variable y = F::dropout(x, 0.3);
  const std::vector<double> in = x.data().to_vector<double>(), out = y.data().to_vector<double>();
  int kept = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (out[i] == 0) continue;
    ++kept;
    EXPECT_NEAR(out[i], in[i] / 0.7, 1e-12);
  }
  EXPECT_NEAR(kept / 2000.0, 0.7, 0.05);
  y.set_grad(x.data());
  y.backward();  // the same mask
  EXPECT_EQ(testing::difference(x.grad(), y.data()), "");
  const Variable other = F::dropout(x, 0.3);
  EXPECT_NE(testing::difference(other.data(), y.data()), "");
}

TEST_P(DropoutFunction, OutsideTrainingIsTheInput) {
  const Variable x(draw({2, 3}));
  EXPECT_TRUE(same_variable(F::dropout(x, 0.5, false), x));
  EXPECT_EQ(F::dropout(x, 0.0).data().raw_data(), x.data().raw_data());  // no kernel
}

CATENA_ON_DEVICES(DropoutFunction);

}  // namespace
}  // namespace catena
