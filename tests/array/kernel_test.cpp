// Users' kernels as far as no GPU is needed: parameter lists and errors.
#include "catena/array/kernel.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"

namespace catena {
namespace {

TEST(KernelParameters, AreParsed) {
  const auto list = parse_kernel_parameters("float32 x, raw T table ,  int64 k");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "x");
  EXPECT_EQ(list[0].letter, 0);
  EXPECT_EQ(list[0].dtype, Dtype::kFloat32);
  EXPECT_TRUE(list[1].raw);
  EXPECT_EQ(list[1].letter, 'T');
  EXPECT_EQ(list[1].name, "table");
  EXPECT_EQ(list[2].dtype, Dtype::kInt64);
  EXPECT_TRUE(parse_kernel_parameters("").empty());
  EXPECT_TRUE(parse_kernel_parameters("  ").empty());
}

TEST(KernelParameters, WrongOnesAreRefused) {
  for (const char* text :
       {"T i", "T n", "T _x", "T", "raw T", "T x y", "T x,,T y", "f4 x", "raw raw T x"}) {
    EXPECT_THROW(parse_kernel_parameters(text), Error) << text;
  }
  EXPECT_THROW(parse_kernel_parameters("nonsense x"), DtypeError);
}

TEST(UserKernels, NeedACudaDevice) {
  const ElementwiseKernel kernel("T x, T y", "T z", "z = x + y", "plus");
  const Array a = ones({3}, dtype::float32);
  try {
    kernel(a, a);
    FAIL() << "ran on a CPU";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("plus"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("cpu:0"), std::string::npos) << error.what();
  }
  EXPECT_THROW(ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0")(a), DeviceError);
  EXPECT_THROW(RawKernel("code", "k")({1}, {1}, {a}), DeviceError);
}

TEST(UserKernels, CountArgumentsFirst) {
  const ElementwiseKernel kernel("T x, T y", "T z", "z = x + y", "plus");
  const Array a = ones({3}, dtype::float32);
  EXPECT_THROW(kernel(a), ValueError);
  EXPECT_THROW(kernel(a, a, a, a), ValueError);
  EXPECT_THROW(ReductionKernel("T x, raw T y", "T z", "x", "a + b", "z = a", "0"), ValueError);
  EXPECT_THROW(ReductionKernel("T x", "T y, T z", "x", "a + b", "y = a", "0"), ValueError);
}

TEST(UserKernels, AreMadeOnce) {
  const ElementwiseKernel& one = cuda::elementwise("T x", "T y", "y = x", "same");
  EXPECT_EQ(&one, &cuda::elementwise("T x", "T y", "y = x", "same"));
  EXPECT_NE(&one, &cuda::elementwise("T x", "T y", "y = -x", "same"));
}

}  // namespace
}  // namespace catena
