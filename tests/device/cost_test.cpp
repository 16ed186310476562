// The cost column of the element-wise table against what the functors' texts do.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cuda/jit/compile/source.h"

namespace catena::jit {
namespace {

bool has(const std::string& text, std::initializer_list<const char*> list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

// A call of an elementary function that is not rounded correctly.
bool approximates(const std::string& text) {
  return has(text, {"m::exp", "m::log", "m::pow", "m::sin", "m::cos", "m::tan", "m::asin",
                    "m::acos", "m::atan", "m::cbrt", "m::erf", "m::hypot"});
}

// What takes many instructions on a GPU in float32.
bool long_in_single(const std::string& text) {
  return has(text, {"m::pow", "m::fmod", "m::sin(", "m::cos(", "m::tan(", "m::atan2", "m::sinh",
                    "m::hypot", "m::asinh", "m::acosh", "m::atanh", "m::log1p", "m::expm1",
                    "m::cosh", "m::erf", "m::tanh", "m::cbrt"});
}

TEST(CostColumn, SaysWhatTheFunctorDoes) {
  for (const ElementwiseOp op : elementwise_ops()) {
    const ElementwiseInfo& row = info(op);
    const std::string text = functor_text(row.functor);
    EXPECT_EQ((int(row.cost) & kApproximated) != 0, approximates(text)) << row.name;
    if (row.computes_in(Dtype::kFloat32)) {
      EXPECT_EQ(is_heavy(row, Dtype::kFloat64), has(text, {"m::", "/"})) << row.name;
      EXPECT_EQ(is_heavy(row, Dtype::kFloat32), long_in_single(text)) << row.name;
      EXPECT_EQ(is_heavy(row, Dtype::kBFloat16),
                long_in_single(functor_text(functor_of(row, Dtype::kBFloat16))))
          << row.name;
    }
    if (row.computes_in(Dtype::kInt32)) {
      EXPECT_EQ(is_heavy(row, Dtype::kInt32), has(text, {"/", "%"})) << row.name;
    }
  }
}

}  // namespace
}  // namespace catena::jit
