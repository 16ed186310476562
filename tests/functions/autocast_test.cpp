// A network in an autocast scope: 16 bits where they are fast, float32 where digits count.
#include "catena/autograd/autocast.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/function_set.h"
#include "catena/functions/array.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/normalization.h"

namespace catena {
namespace {

namespace F = catena::functions;

struct Net : FunctionSet {
  F::Convolution2D c1{1, 4, 3, {.pad = 1}}, c2{4, 4, 3, {.pad = 1}};
  F::BatchNormalization b1{4};
  F::Linear last{4 * 36, 3, {.flatten = true}};
  CATENA_FUNCTIONS(c1, c2, b1, last)
  Variable operator()(const Variable& x) const { return last(c2(b1.relu(c1(x)))); }
};

// The dtype of each function's first output.
struct Dtypes : FunctionHook {
  std::map<std::string, Dtype> seen;
  void forward_ends(const FunctionCall& call) override {
    seen[call.name()] = call.outputs()[0].dtype();
  }
};

double largest_difference(const Array& a, const Array& b) {
  return amax(absolute(a - b)).item<float>() / amax(absolute(b)).item<float>();
}

TEST(AutocastOfANetwork, IsCloseToFloat32) {
  random::seed(3);
  const Net net;
  const Array x = random::normal({8, 1, 6, 6}, 0, 1, dtype::float32);
  const Array t = random::randint(0, 3, {8});
  std::map<std::string, Array> expected;
  for (Dtype low : {dtype::float32, dtype::bfloat16, dtype::float16}) {
    Net copy = net;
    Dtypes dtypes;
    Variable loss;
    {
      const AutocastScope scope(low);
      const FunctionHookScope hook(dtypes);
      loss = F::softmax_cross_entropy(copy(x), t);
    }
    loss.backward();
    EXPECT_EQ(loss.dtype(), dtype::float32);
    EXPECT_EQ(dtypes.seen.at("Convolution2D"), low);
    EXPECT_EQ(dtypes.seen.at("BatchNormalization"), low);
    EXPECT_EQ(dtypes.seen.at("Linear"), low);
    for (const auto& [path, p] : copy.named_parameters()) {
      EXPECT_EQ(p.grad().dtype(), dtype::float32) << path;
      if (low == dtype::float32) {
        expected[path] = p.grad().copy();
      } else if (path != "c1/b") {  // normalization removes it: rounding is all that is left
        EXPECT_LT(largest_difference(p.grad(), expected.at(path)), 0.05) << path << ' ' << low;
      }
    }
  }
}

TEST(AutocastOfANetwork, JoinsInTheWidestDtype) {
  const AutocastScope scope(dtype::bfloat16);
  const Variable wide(ones({2, 2}, dtype::float32)), low(ones({2, 2}, dtype::bfloat16));
  const Variable y = F::concat({low, wide}, 0);
  EXPECT_EQ(y.dtype(), dtype::float32);
  F::sum(y).backward();
  EXPECT_EQ(low.grad().dtype(), dtype::bfloat16);
}

}  // namespace
}  // namespace catena
