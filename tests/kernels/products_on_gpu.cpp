// Convolutions as products in the order that they have on a GPU. Runs without one: the slots of a
// pretended GPU compute by the CPU's providers.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "catena/core/config.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/elementwise.h"
#include "catena/kernels/matmul.h"
#include "kernels/convolution_case.h"
#include "pretended_gpu.h"

namespace catena {
namespace {

using testing::ConvolutionCase;
using testing::ConvolutionData;
using testing::Pass;

template <class Call>
void lend(Slot<Call>& slot) {
  for (const ProviderInfo& p : slot.providers(DeviceType::kCpu))
    slot.provide(DeviceType::kCuda, p.name.c_str(), slot.provider(DeviceType::kCpu, p.name),
                 p.priority);
}

// Those of a batch are counted one by one.
int64_t g_products = 0;
bool count_product(const MatmulCall& call) {
  g_products += call.output->ndim() == 3 ? call.output->shape()[0] : 1;
  return false;
}

void lend_all() {
  static const bool once = [] {
    testing::pretended_gpu();
    lend(kernels::copy);
    lend(kernels::fill);
    lend(kernels::elementwise);
    lend(kernels::matmul);
    lend(kernels::patches);
    lend(kernels::patch_sums);
    lend(kernels::convolution);
    lend(kernels::convolution_grad_x);
    lend(kernels::convolution_grad_w);
    kernels::matmul.provide(DeviceType::kCuda, "count", &count_product, 99);
    return true;
  }();
  static_cast<void>(once);
}

// The same memory as the pretended GPU's.
Array on_gpu(const Array& a) {
  const StoragePtr& host = a.storage();
  const auto owner = std::make_shared<StoragePtr>(host);
  return Array::from_storage(
      borrow(cuda_device(0), host->data, host->bytes, owner),
      static_cast<const char*>(a.raw_data()) - static_cast<const char*>(host->data), a.shape(),
      a.strides(), a.dtype());
}

ConvolutionData on_gpu(ConvolutionData d) {
  for (testing::CaseArray* a : {&d.x, &d.w, &d.b, &d.y}) a->array = on_gpu(a->array);
  return d;
}

// Where a pass is wrong; empty where it is right. Counts its products.
std::string fault(Pass pass, const ConvolutionCase& c, uint32_t seed) {
  lend_all();
  const ConvolutionData host(c, cpu(0), seed);
  g_products = 0;
  if (!call_provider(pass, "products", cuda_device(0), c, on_gpu(host))) return "declined";
  const Array& result = testing::result_of(pass, host).array;
  return testing::difference(result, c, testing::expected_convolution(pass, c, host));
}

constexpr Pass kPasses[] = {Pass::kForward, Pass::kGradX, Pass::kGradW};

void check_patch_cases() {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16})
    for (const Pass pass : kPasses)
      for (ConvolutionCase c : testing::patch_cases()) {
        c.dtype = dtype;
        EXPECT_EQ(fault(pass, c, 5), "") << int(pass);
      }
}

TEST(ProductsOnGpu, CutImagesIntoPatches) { check_patch_cases(); }

TEST(ProductsOnGpu, AgreeWithTheDefinition) {
  std::mt19937 random(17);
  for (uint32_t i = 0; i < 400; ++i) {
    ConvolutionCase c = testing::random_convolution(random);
    c.dtype = i % 4 ? Dtype::kFloat32 : Dtype::kFloat16;
    for (const Pass pass : kPasses) EXPECT_EQ(fault(pass, c, i), "") << int(pass);
  }
}

TEST(ProductsOnGpu, TakeOneImageAtATime) {
  const Config before = config();
  config().max_workspace_size = 1;
  check_patch_cases();
  config() = before;
}

// Patches of all images are one product if they fit, also with channels first and 35 positions.
TEST(ProductsOnGpu, PatchesOfAllImagesAreOneProduct) {
  const Config before = config();
  for (ConvolutionCase c : testing::patch_cases()) {
    if (c.groups > 1) continue;
    for (const Pass pass : kPasses) {
      config() = before;
      EXPECT_EQ(fault(pass, c, 6), "");
      EXPECT_EQ(g_products, 1) << int(pass) << c.text();
      config().max_workspace_size = 1;
      EXPECT_EQ(fault(pass, c, 6), "");
      EXPECT_EQ(g_products, c.batch) << int(pass) << c.text();
    }
  }
  config() = before;
}

// Where a result may be kept in scratch memory of a limited size, that is what it takes.
TEST(ProductsOnGpu, ObeyTheLimitOfMemory) {
  const Config before = config();
  ConvolutionCase c = testing::patch_cases().front();
  ASSERT_FALSE(c.channels_last);
  c.batch = 4;
  // Patches and the moved y of two images.
  config().max_workspace_size = size_t(2 * (48 + 8) * 35 * 4);
  for (const Pass pass : kPasses) {
    EXPECT_EQ(fault(pass, c, 7), "");
    EXPECT_EQ(g_products, 2) << int(pass);
  }
  config().max_workspace_size -= 1;
  EXPECT_EQ(fault(Pass::kForward, c, 7), "");
  EXPECT_EQ(g_products, 4);
  config() = before;
}

}  // namespace
}  // namespace catena
