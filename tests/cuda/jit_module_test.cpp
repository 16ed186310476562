// Modules with variables, modules made elsewhere, reductions by text, dimensions that are kept: on
// a GPU.
#include "catena/array/kernel.h"
#include "catena/array/math.h"
#include "catena/array/raw_kernel.h"
#include "catena/array/reduction.h"
#include "gpu.h"
#include "temp_folder.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);

TEST(CudaModules, HaveVariables) {
  CATENA_NEEDS_GPUS(1);
  const Module module = Module::compile(
      "extern \"C\" {\n"
      "__device__ float offset[2];\n"
      "__global__ void shift(const float* x, float* y, long long n) {\n"
      "  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
      "  if (i < n) y[i] = x[i] + offset[1];\n"
      "}\n}\n");
  const Array offset = module.get_global_var("offset", {2}, Dtype::kFloat32, kGpu);
  EXPECT_EQ(offset.device(), kGpu);
  offset.set(array(std::vector<float>{5, 7}));
  const Array x = whole_numbers({1000}, Dtype::kFloat32),
              y = zeros({1000}, {Dtype::kFloat32, kGpu});
  module.get_function("shift").linear_launch(x.size(), {x.to(kGpu), y, x.size()});
  expect_equal(y, add(x, 7), "the kernel reads what the array wrote");
  EXPECT_THROW(module.get_global_var("nothing", {2}, Dtype::kFloat32, kGpu), DeviceError);
  EXPECT_THROW(module.get_global_var("offset", {3}, Dtype::kFloat32, kGpu), ShapeError);
}

// Writes 7 to where its only parameter points.
constexpr const char* kPtx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry set7(.param .u64 target) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [target];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 7;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

TEST(CudaModules, AreLoadedFromMemoryAndFiles) {
  CATENA_NEEDS_GPUS(1);
  TempFolder folder;
  const std::string path = folder / "set7.ptx";
  std::ofstream(path) << kPtx;
  for (const Module& module : {Module::load(kPtx), Module::load_file(path)}) {
    const Array number = zeros({1}, {Dtype::kInt32, kGpu});
    module.get_function("set7")({1}, {1}, {number});
    EXPECT_EQ(number.item<int>(), 7);
    EXPECT_THROW(module.get_function("set8")({1}, {1}, {number}), Error);
  }
}

TEST(CudaModules, ReductionsByTextRun) {
  CATENA_NEEDS_GPUS(1);
  const auto norm = cuda::reduce("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "text_norm");
  for (const Dtype d : {Dtype::kFloat32, Dtype::kFloat64}) {
    const Array x = whole_numbers({30, 70}, d);
    for (const int64_t axis : {0, 1})
      expect_equal(Array(norm(x.to(kGpu), axis)), sqrt(sum(square(x), axis)), "norm");
    expect_equal(Array(norm(x.to(kGpu).T(), 0)), sqrt(sum(square(x), 1)), "transposed");
  }
}

// With reduce_dims off the loop over an array of three dimensions has three: another program than
// that of a vector. The index of an element is the same.
TEST(CudaModules, KernelsMayKeepTheirDimensions) {
  CATENA_NEEDS_GPUS(1);
  const auto programs = [] {
    const KernelCacheStatistics now = kernel_cache_statistics();
    return now.bundle_hits + now.disk_hits + now.compiled;
  };
  for (const bool reduce : {true, false}) {
    KernelOptions options;
    options.reduce_dims = reduce;
    const ElementwiseKernel kernel("T x", "T y", "y = x * 2 + i", message("kept_", reduce),
                                   options);
    const Array x = whole_numbers({4, 5, 6}, Dtype::kFloat32);
    const Array index = arange(120, cpu()).astype(Dtype::kFloat32).reshape({4, 5, 6});
    const auto before = programs();
    const Array y(kernel(x.to(kGpu))), z(kernel(x.ravel().to(kGpu)));
    EXPECT_EQ(programs() - before, reduce ? 1u : 2u);
    expect_equal(y, add(multiply(x, 2), index), message("reduce ", reduce));
    expect_equal(z.reshape({4, 5, 6}), add(multiply(x, 2), index), message("vector ", reduce));
  }
}

}  // namespace
}  // namespace catena
