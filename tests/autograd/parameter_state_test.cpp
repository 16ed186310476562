// The gradient of a parameter: what its memory holds and what is known of it.
#include "catena/autograd/parameter_state.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/autograd/parameter.h"

namespace catena {
namespace {

std::vector<double> values(const Array& a) { return a.to_vector<double>(); }
const std::vector<double> kZeros(2, 0), kOnes(2, 1), kTwos(2, 2);

struct Gradient : ::testing::Test {
  const Parameter p{zeros({2})};
  ParameterState& state = *p.state();
};

TEST_F(Gradient, IsStaleUntilSomethingIsWritten) {
  EXPECT_TRUE(state.is_stale());
  EXPECT_FALSE(state.has_gradient());
  EXPECT_FALSE(state.gradient_memory().defined());
  EXPECT_EQ(values(state.settle()), kZeros);
  EXPECT_FALSE(state.is_stale());
  EXPECT_FALSE(state.has_gradient());
  EXPECT_FALSE(p.variable().grad().defined());  // nothing has flowed
}

TEST_F(Gradient, TheFirstContributionOverwritesLaterOnesAdd) {
  const GradientTarget first = state.accumulate_target();
  EXPECT_FALSE(first.accumulate);
  first.array->fill(1);
  state.mark_written();
  EXPECT_TRUE(state.has_gradient());
  EXPECT_TRUE(state.accumulate_target().accumulate);
  EXPECT_EQ(state.accumulate_target().array, first.array);
  state.add_gradient(ones({2}));
  EXPECT_EQ(values(state.settle()), kTwos);
}

TEST_F(Gradient, MarkZeroWritesNothing) {
  state.set_gradient(full({2}, 2.0));
  const uint64_t writes = state.gradient_memory().storage()->version;
  state.mark_zero();
  EXPECT_EQ(state.gradient_memory().storage()->version, writes);
  EXPECT_TRUE(state.is_stale());
  EXPECT_FALSE(state.has_gradient());
  EXPECT_FALSE(state.accumulate_target().accumulate);
  state.add_gradient(ones({2}));
  EXPECT_EQ(values(state.settle()), kOnes);
}

// settle() of a whole arena by one call.
TEST_F(Gradient, ZerosOfTheCallerAreKept) {
  state.set_gradient(ones({2}));
  state.mark_zero();
  state.gradient_memory().fill(0);
  state.mark_filled();
  EXPECT_TRUE(state.accumulate_target().accumulate);
  state.add_gradient(ones({2}));
  EXPECT_EQ(values(p.grad()), kOnes);
}

TEST_F(Gradient, KeepsWhatIsKnownInANewPlace) {
  state.mark_zero();
  const Array place = ones({2});
  state.bind_gradient(place);
  EXPECT_TRUE(state.is_stale());
  state.set_gradient(full({2}, 2.0));
  EXPECT_EQ(values(place), kTwos);
  state.bind_gradient(full({2}, 2.0));
  EXPECT_TRUE(state.has_gradient());
  state.bind_gradient(Array());
  EXPECT_TRUE(state.is_stale());
  EXPECT_EQ(values(state.settle()), kZeros);
}

TEST_F(Gradient, MovesWithTheParameter) {
  p.set_grad(ones({2}));
  p.to(cpu(1));
  EXPECT_EQ(p.grad().device(), cpu(1));
  EXPECT_EQ(values(p.grad()), kOnes);
  p.accumulate_grad(ones({2}));  // of cpu:0
  EXPECT_EQ(values(p.grad()), kTwos);
}

}  // namespace
}  // namespace catena
