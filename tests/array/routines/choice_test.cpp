// The probabilities that random::choice takes.
#include <gtest/gtest.h>

#include <vector>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

// A softmax in float32 adds up to 1 within its own precision, which is enough, as in NumPy.
TEST(Choice, TakesProbabilitiesOfTheirOwnPrecision) {
  RandomState state(1);
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat64}) {
    for (int i = 0; i < 20; ++i) {
      const Array e = exp(state.normal({28}, 0, 1, Dtype::kFloat64));
      const Array p = (e / e.sum()).astype(dtype);
      EXPECT_NO_THROW(state.choice(28, 3, true, p)) << name(dtype);
      EXPECT_NO_THROW(state.choice(28, 3, false, p)) << name(dtype);
    }
  }
  const auto off_by = [&](double error, Dtype dtype) {
    const Array p = array(std::vector<double>{0.5, 0.5 + error}).astype(dtype);
    return error_of<ValueError>([&] { state.choice(2, 3, true, p); });
  };
  EXPECT_EQ(off_by(3e-4, Dtype::kFloat32), "no error");
  expect_contains(off_by(4e-4, Dtype::kFloat32), {"choice", "add up to 1", "float32", "divide"});
  EXPECT_EQ(off_by(1.4e-8, Dtype::kFloat64), "no error");
  expect_contains(off_by(1.6e-8, Dtype::kFloat64), {"choice", "add up to 1", "float64"});
  // What is off is shared by all: frequencies stay those of the probabilities.
  const Array drawn = state.choice(2, 100000, true, array({0.5003f, 0.5f}));
  EXPECT_NEAR(mean(drawn).item<double>(), 0.5, 0.01);
  EXPECT_EQ(error_of<ValueError>([&] { state.choice(3, 3, true, array({0, 1, 0})); }), "no error");
}

}  // namespace
}  // namespace catena
