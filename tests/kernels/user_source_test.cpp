// Texts of users' kernels compile, and the compiler's complaints name the user's lines.
#include <gtest/gtest.h>

#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/jit/compile/user_source.h"
#include "catena/core/error.h"

namespace catena::jit {
namespace {

class UserKernelTexts : public testing::Test {
 protected:
  static void SetUpTestSuite() { set_nvrtc_path(CATENA_TEST_NVRTC); }
};

ElementwiseKernel::Definition definition(const std::string& operation, KernelOptions options = {}) {
  return {{}, {}, operation, "my_kernel", std::move(options)};
}
void expect_compiles(const std::string& source) {
  try {
    EXPECT_GT(compile(source, 90, "my_kernel").size(), 500u);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST_F(UserKernelTexts, ElementwiseInEveryDtype) {
  for (int d = 0; d < kDtypeCount; ++d) {
    const std::vector<std::pair<char, Dtype>> letters{{'T', Dtype(d)}};
    expect_compiles(
        user_elementwise_source(definition("T t = x; z = t * y + (T)i"), {{"z", Dtype(d), false}},
                                {{"x", Dtype(d), false}, {"y", Dtype::kFloat32, false}}, letters));
  }
}

TEST_F(UserKernelTexts, RawArgumentsAndOptions) {
  KernelOptions options;
  options.preamble = "__device__ float twice(float x) { return 2 * x; }";
  options.loop_prep = "float sum = 0; const long long half = n / 2";
  options.after_loop = "if (sum < 0) raw_out[0] = sum";
  for (const Dtype d : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kInt32}) {
    const std::vector<std::pair<char, Dtype>> letters{{'T', d}};
    expect_compiles(user_elementwise_source(
        definition(
            "int at[2] = {0, (int)i}; if (i > half) continue; raw_out[i] = twice(table[i % "
            "table.size()]) + table[at];\n"
            "raw_out[i] += x; sum += raw_out[i] + (float)table.shape()[0] + (float)_ind.size();",
            options),
        {{"raw_out", d, true}}, {{"table", d, true}, {"x", d, false}}, letters));
  }
  expect_compiles(user_elementwise_source(definition("y[i] = x[n - 1 - i]"),
                                          {{"y", Dtype::kFloat64, true}},
                                          {{"x", Dtype::kFloat64, true}}, {}));
}

TEST_F(UserKernelTexts, Reductions) {
  for (const Dtype d : {Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt64}) {
    const std::vector<std::pair<char, Dtype>> letters{{'T', d}};
    ReductionKernel::Definition kernel{{}, {}, "x * y", "a + b", "z = a / 2", "0", "dot", "", ""};
    expect_compiles(user_reduction_source(kernel, {"z", d, false},
                                          {{"x", d, false}, {"y", d, false}}, letters));
    kernel.identity = "";
    kernel.reduce = "a > b ? a : b";
    kernel.reduce_type = "double";
    expect_compiles(user_reduction_source(kernel, {"z", d, false},
                                          {{"x", d, false}, {"y", d, false}}, letters));
  }
}

TEST_F(UserKernelTexts, ErrorsNameTheUsersLine) {
  try {
    compile(user_elementwise_source(definition("float t = x;\nz = t + undefined_thing"),
                                    {{"z", Dtype::kFloat32, false}},
                                    {{"x", Dtype::kFloat32, false}}, {}),
            90, "my_kernel");
    FAIL() << "a wrong text compiled";
  } catch (const ValueError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("my_kernel(2)"), std::string::npos) << text;
    EXPECT_NE(text.find("undefined_thing"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace catena::jit
