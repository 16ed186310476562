// Texts of users' kernels compile, and the compiler's complaints name the user's lines.
#include <gtest/gtest.h>

#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/jit/compile/user_source.h"
#include "backends/cuda/jit/host_args.h"
#include "catena/core/error.h"
#include "device/cached_compile.h"

namespace catena::jit {
namespace {

class UserKernelTexts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { set_nvrtc_path(CATENA_TEST_NVRTC); }
};

ElementwiseKernel::Definition definition(const std::string& operation, KernelOptions options = {}) {
  ElementwiseKernel::Definition kernel;
  kernel.operation = operation;
  kernel.name = "my_kernel";
  kernel.options = std::move(options);
  return kernel;
}
void expect_compiles(const std::string& source) {
  try {
    EXPECT_GT(cached_compile(source, 90, "my_kernel").size(), 500u);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST_F(UserKernelTexts, ElementwiseInEveryDtype) {
  for (int d = 0; d < kDtypeCount; ++d) {
    const std::vector<std::pair<char, Dtype>> letters{{'T', Dtype(d)}};
    for (const int dims : {1, kUserDims}) {
      expect_compiles(user_elementwise_source(
          definition("T t = x; z = t * y + (T)i"), {{"z", Dtype(d), false}},
          {{"x", Dtype(d), false}, {"y", Dtype::kFloat32, false}}, letters, dims));
    }
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
        {{"raw_out", d, true}}, {{"table", d, true}, {"x", d, false}}, letters, kUserDims));
  }
  expect_compiles(user_elementwise_source(definition("y[i] = x[n - 1 - i]"),
                                          {{"y", Dtype::kFloat64, true}},
                                          {{"x", Dtype::kFloat64, true}}, {}, 1));
}

ReductionKernel::Definition reduction(const std::string& map, const std::string& fold,
                                      const std::string& post, const std::string& identity) {
  ReductionKernel::Definition kernel;
  kernel.map = map;
  kernel.reduce = fold;
  kernel.post_map = post;
  kernel.identity = identity;
  kernel.name = "my_reduction";
  return kernel;
}

TEST_F(UserKernelTexts, Reductions) {
  for (const Dtype d : {Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt64}) {
    const std::vector<std::pair<char, Dtype>> letters{{'T', d}};
    ReductionKernel::Definition kernel = reduction("x * y", "a + b", "z = a / 2", "0");
    expect_compiles(user_reduction_source(kernel, {{"z", d, false}},
                                          {{"x", d, false}, {"y", d, false}}, letters));
    kernel.identity = "";
    kernel.reduce = "a > b ? a : b";
    kernel.reduce_type = "double";
    expect_compiles(user_reduction_source(kernel, {{"z", d, false}},
                                          {{"x", d, false}, {"y", d, false}}, letters));
  }
}

TEST_F(UserKernelTexts, ReductionsWithOutputsRawArgumentsAndAnOwnType) {
  ReductionKernel::Definition kernel =
      reduction("best(x * weight[_j % weight.size()], _j)", "a.value > b.value ? a : b",
                "value = a.value; at = a.at + 0 * _i", "best(-1e30f, -1)");
  kernel.preamble =
      "struct best { float value; long long at; __device__ best() {} "
      "__device__ best(float v, long long i) : value(v), at(i) {} };";
  kernel.reduce_type = "best";
  EXPECT_EQ(reduced_bytes(kernel, Dtype::kFloat32), 0);
  kernel.preamble =
      "struct best { float value; long long at; };\n"
      "__device__ best made(float v, long long i) { best b; b.value = v; b.at = i; return b; }";
  kernel.map = "made(x * weight[_j % weight.size()], _j)";
  kernel.identity = "made(-1e30f, -1)";
  expect_compiles(user_reduction_source(
      kernel, {{"value", Dtype::kFloat32, false}, {"at", Dtype::kInt64, false}},
      {{"x", Dtype::kFloat16, false}, {"weight", Dtype::kFloat32, true}}, {}));
  kernel.reduce_type = "unsigned long long";
  EXPECT_EQ(reduced_bytes(kernel, Dtype::kFloat32), 8);
  kernel.reduce_type = "";
  EXPECT_EQ(reduced_bytes(kernel, Dtype::kBFloat16), 4);
  EXPECT_EQ(reduced_bytes(kernel, Dtype::kInt8), 1);
}

TEST_F(UserKernelTexts, OldFormReductions) {
  ReductionKernel::Definition kernel = reduction("c * x[i] * y[i]", "a + b", "_result = a", "0");
  kernel.old_form = true;
  for (const Dtype d : {Dtype::kFloat32, Dtype::kInt64}) {
    expect_compiles(user_reduction_source(
        kernel, {{"_result", d, false}},
        {{"x", d, true}, {"y", Dtype::kFloat64, true}, {"c", Dtype::kFloat32, false}}, {}));
  }
  // i is the index of the old form alone: others may have an argument of another meaning.
  kernel.old_form = false;
  EXPECT_EQ(user_reduction_source(kernel, {{"_result", Dtype::kFloat32, false}},
                                  {{"x", Dtype::kFloat32, true}}, {})
                .find("long long i ="),
            std::string::npos);
}

// They are launched before the previous kernel has ended.
TEST_F(UserKernelTexts, KernelsBeginWithTheWait) {
  const auto expect_waits = [](const std::string& source, int kernels) {
    int found = 0;
    for (size_t at = 0;
         (at = source.find("extern \"C\" __global__ void __launch", at)) != std::string::npos;
         ++at, ++found) {
      const std::string body = source.substr(source.find(") {\n", at) + 4, 50);
      EXPECT_EQ(body.find("  catena::jit::wait_for_previous_kernel();\n"), 0u) << body;
    }
    EXPECT_EQ(found, kernels);
  };
  expect_waits(user_elementwise_source(definition("z = x"), {{"z", Dtype::kFloat32, false}},
                                       {{"x", Dtype::kFloat32, false}}, {}, 1),
               1);
  expect_waits(
      user_reduction_source(reduction("x", "a + b", "z = a", "0"), {{"z", Dtype::kFloat32, false}},
                            {{"x", Dtype::kFloat32, false}}, {}),
      2);
}

TEST_F(UserKernelTexts, OptionsReachTheCompiler) {
  const std::string source =
      user_elementwise_source(definition("z = FACTOR * x"), {{"z", Dtype::kFloat32, false}},
                              {{"x", Dtype::kFloat32, false}}, {}, 1);
  EXPECT_THROW(compile(source, 90, "my_kernel"), ValueError);
  EXPECT_GT(compile(source, 90, "my_kernel", {"-DFACTOR=3"}).size(), 500u);
  EXPECT_NE(kernel_key(source, 90), kernel_key(source, 90, {"-DFACTOR=3"}));
  EXPECT_THROW(compile(source, 90, "my_kernel", {"--no-such-option"}), ValueError);
}

TEST_F(UserKernelTexts, ReductionErrorsNameTheUsersPart) {
  const auto refused = [&](const ReductionKernel::Definition& kernel, const char* place) {
    try {
      compile(user_reduction_source(kernel, {{"z", Dtype::kFloat32, false}},
                                    {{"x", Dtype::kFloat32, false}}, {}),
              90, "my_reduction");
      ADD_FAILURE() << "a wrong text compiled";
    } catch (const ValueError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(place), std::string::npos) << text;
      EXPECT_NE(text.find("wrong_name"), std::string::npos) << text;
    }
  };
  refused(reduction("x\n* wrong_name", "a + b", "z = a", "0"), "my_reduction map(2)");
  refused(reduction("x", "a + wrong_name", "z = a", "0"), "my_reduction reduce(1)");
  refused(reduction("x", "a + b", "z = wrong_name", "0"), "my_reduction post-map(1)");
}

TEST_F(UserKernelTexts, ErrorsNameTheUsersLine) {
  try {
    compile(user_elementwise_source(definition("float t = x;\nz = t + undefined_thing"),
                                    {{"z", Dtype::kFloat32, false}},
                                    {{"x", Dtype::kFloat32, false}}, {}, kUserDims),
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
