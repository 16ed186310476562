// Host glue of the matmul slot: chooses between cuBLASLt and catena's own kernels.
#include "backends/cuda/matmul/matmul.h"

#include "backends/common/family.h"
#include "backends/cuda/matmul/library_product.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/core/config.h"
#include "catena/kernels/matmul.h"

namespace catena::gpu {
namespace {

bool run_library(const Product& p, Dtype dtype, int device, const Launch& launch) {
  const Precision precision = config().matmul_precision;
  auto library = library_product(p);
  if (!library || p.batch > INT32_MAX) return false;
  if (library_matmul(dtype, precision, *library, device, launch.stream)) return true;
  if ((!p.bias && !p.relu) || p.accumulate) return false;
  library->bias = nullptr;
  library->activation = LibraryActivation::kNone;
  if (!library_matmul(dtype, precision, *library, device, launch.stream)) return false;
  launch_bias_activation(float_code("matmul", dtype), p, launch);
  return true;
}

// Small products by catena's own kernels. Returns false if the library is to compute this one.
bool run_small(const Product& p, Dtype dtype, const Launch& launch) {
  const bool single = dtype == Dtype::kFloat32;
  if ((!single && dtype != Dtype::kFloat64) || p.k == 0) return false;
  if (single && fits_thin_matmul(p, launch)) {
    launch_thin_matmul(p, launch);
  } else if (fits_tiny_matmul(p, launch)) {
    launch_tiny_matmul(!single, p, launch);
  } else {
    return false;
  }
  check_launch("matmul (small)");
  return true;
}

// The providers, in the order in which they are asked. -------------------------------------------

bool is_empty(const Product& p) { return p.m == 0 || p.n == 0 || p.batch == 0; }

bool small_matmul(const MatmulCall& call) {
  const Product p = product_of(call);
  return is_empty(p) || run_small(p, call.a->dtype(), launch_for(*call.output));
}

bool cublaslt_matmul(const MatmulCall& call) {
  const Product p = product_of(call);
  const Dtype dtype = call.a->dtype();
  if (is_empty(p)) return true;
  if (!is_float(dtype) || p.k == 0) return false;
  const int device = call.output->device().index();
  return run_library(p, dtype, device, launch_for(*call.output));
}

// Any product, by simple tiles.
void simple_matmul(const MatmulCall& call) {
  Product p = product_of(call);
  const Dtype dtype = call.a->dtype();
  if (is_empty(p)) return;
  if (is_unsigned_int(dtype)) p.relu = false;  // unsigned integers are never negative
  launch_simple_matmul(static_cast<Element>(dtype), p, launch_for(*call.output));
  check_launch("matmul (simple)");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, matmul) {
  kernels::matmul.provide(DeviceType::kCuda, "small", &gpu::small_matmul, 2);
  kernels::matmul.provide(DeviceType::kCuda, "cublaslt", &gpu::cublaslt_matmul, 1);
  kernels::matmul.provide<&gpu::simple_matmul>(DeviceType::kCuda, "simple");
}
