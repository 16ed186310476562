// Every family of kernel texts compiles, for sm_80 and sm_90, without a GPU. The build's bundle has
// compiled what training requests; here come samples of all other standard programs and what only
// occurs at run time: mixed dtypes and all casts. FusedTexts compiles every operation in every
// dtype.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/jit/compile/source.h"
#include "backends/cuda/jit/tool/bundle_list.h"
#include "catena/core/error.h"
#include "catena/kernels/elementwise_ops.h"
#include "device/cached_compile.h"

namespace catena::jit {
namespace {

class KernelTexts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { set_nvrtc_path(CATENA_TEST_NVRTC); }
};

void expect_compiles(const std::string& source, const std::string& what, int arch) {
  try {
    EXPECT_GT(cached_compile(source, arch, what.c_str()).size(), 1000u) << what;
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

// CATENA_LONG_TESTS=1 compiles all of them, which takes minutes; otherwise a sample of every kind.
TEST_F(KernelTexts, StandardProgramsForBothArchitectures) {
  const bool all = std::getenv("CATENA_LONG_TESTS") != nullptr;
  const std::vector<BundleItem> list = full_programs();
  EXPECT_GT(list.size(), 800u);
  for (const auto& [arch, step] : {std::pair{80, 29}, {90, 53}}) {
    for (size_t i = 0; i < list.size(); i += all ? 1 : size_t(step))
      expect_compiles(list[i].source, list[i].what, arch);
  }
}

TEST_F(KernelTexts, MixedDtypes) {
  using enum Dtype;
  const MapSpec specs[] = {{ops::add, kFloat32, {kFloat32, kFloat16, kFloat32}},
                           {ops::multiply, kBFloat16, {kFloat32, kBFloat16, kInt8}},
                           {ops::where, kFloat64, {kFloat32, kInt32, kFloat32, kFloat64}},
                           {ops::less, kInt64, {kFloat16, kInt8, kUInt32}},
                           {ops::power, kFloat16, {kFloat64, kBool, kFloat16}},
                           {ops::divide, kFloat64, {kFloat64, kInt32, kInt64}}};
  for (const MapSpec& spec : specs) expect_compiles(map_source(spec), "mixed dtypes", 90);
}

TEST_F(KernelTexts, EveryCast) {
  const bool all = std::getenv("CATENA_LONG_TESTS") != nullptr;
  for (int from = 0; from < kDtypeCount; ++from) {
    for (int to = 0; to < kDtypeCount; ++to) {
      if (from == to || (!all && (from * kDtypeCount + to) % 17 != 3)) continue;
      expect_compiles(map_source({ops::positive, Dtype(from), {Dtype(to), Dtype(from)}}),
                      std::string(name(Dtype(from))) + " to " + name(Dtype(to)), 80);
    }
  }
}

TEST_F(KernelTexts, ErrorsCarryTheLogAndTheName) {
  try {
    compile("extern \"C\" __global__ void k(float* a) { a[0] = missing_name; }", 90, "my kernel");
    FAIL() << "a wrong text compiled";
  } catch (const ValueError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("my kernel"), std::string::npos) << text;
    EXPECT_NE(text.find("missing_name"), std::string::npos) << text;
  }
}

TEST_F(KernelTexts, KeysDependOnTextAndArchitecture) {
  const std::string add = map_source(same_dtype_spec(ops::add, Dtype::kFloat32));
  EXPECT_EQ(kernel_key(add, 90), kernel_key(add, 90));
  EXPECT_NE(kernel_key(add, 90), kernel_key(add, 80));
  EXPECT_NE(kernel_key(add, 90),
            kernel_key(map_source(same_dtype_spec(ops::subtract, Dtype::kFloat32)), 90));
}

// A program holds its own functor and no other, so that a change of one operation leaves the other
// bundle entries valid.
TEST_F(KernelTexts, ProgramsHoldOnlyWhatTheyUse) {
  const std::string clip = map_source(same_dtype_spec(ops::clip, Dtype::kFloat32));
  for (const char* used :
       {"struct Clip ", "struct Maximum ", "struct Minimum ", "struct IsFloat"}) {
    EXPECT_NE(clip.find(used), std::string::npos) << used;
  }
  for (const char* unused : {"struct Add ", "struct Tanh ", "struct MaximumGrad "})
    EXPECT_EQ(clip.find(unused), std::string::npos) << unused;
}

}  // namespace
}  // namespace catena::jit
