// Linear layers with GELU behind them, as one product of cuBLASLt.
#include "catena/kernels/linear.h"

#include "backends/common/family.h"
#include "backends/cuda/matmul/library_product.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/core/config.h"
#include "catena/kernels/matmul.h"

namespace catena::gpu {
namespace {

// What the library demands of the array for the numbers before the activation, and of the bias.
bool takes(const LinearActivationCall& call) {
  const int64_t row_bytes = call.y->shape()[1] * call.y->itemsize();
  return aligned16(data_of(call.before), data_of(call.bias)) &&
         (call.before == nullptr || row_bytes % 16 == 0);
}

// The library has the form with tanh. Numbers of 16 bits only: in float32 the pass over the product
// takes less beside it, and was not measured. What it would do with gradients, DGELU_BGRAD and
// BGRADB, takes longer than kernels of catena beside the product (docs/decisions.md, Kernels on
// GPUs).
bool cublaslt_linear_activation(const LinearActivationCall& call) {
  const Dtype dtype = call.y->dtype();
  if (call.function != LinearActivation::kGeluTanh || !is_narrow_float(dtype) || !takes(call))
    return false;
  const Array transposed = call.W->T();
  const Product product =
      product_of(MatmulCall{.a = call.x, .b = &transposed, .output = call.y, .bias = call.bias});
  std::optional<LibraryProduct> library = library_product(product);
  if (product.k == 0 || !library) return false;
  library->activation = LibraryActivation::kGeluTanh;
  if (call.before != nullptr) {
    library->before = call.before->raw_data();
    library->before_leading = library->rows;
  }
  const Launch launch = launch_for(*call.y);
  return library_matmul(dtype, config().matmul_precision, *library, launch.device, launch.stream);
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, linear) {
  kernels::linear_activation.provide(DeviceType::kCuda, "cublaslt",
                                     &gpu::cublaslt_linear_activation, 1);
}
