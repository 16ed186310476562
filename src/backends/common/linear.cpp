// Linear layers with an activation as a product, an element-wise operation and a sum, for devices
// and calls without a kernel that does more at once.
#include "catena/kernels/linear.h"

#include "backends/common/family.h"
#include "catena/array/array.h"
#include "catena/array/elementwise.h"
#include "catena/kernels/elementwise.h"
#include "catena/kernels/matmul.h"
#include "catena/kernels/reduce.h"

namespace catena {
namespace {

void linear_activation(const LinearActivationCall& call) {
  static const ElementwiseOp gelu = elementwise_op("gelu"), gelu_tanh = elementwise_op("gelu_tanh");
  const bool is_relu = call.function == LinearActivation::kRelu;
  const Array transposed = call.W->T(), &product = call.before ? *call.before : *call.y;
  kernels::matmul(product.device(),
                  {.a = call.x,
                   .b = &transposed,
                   .output = &product,
                   .bias = call.bias,
                   .activation = is_relu ? Activation::kRelu : Activation::kNone});
  if (!is_relu)
    elementwise(call.function == LinearActivation::kGelu ? gelu : gelu_tanh, {product}, *call.y);
}

void linear_activation_grad(const LinearActivationGradCall& call) {
  static const ElementwiseOp slopes[] = {elementwise_op("relu_grad"), elementwise_op("gelu_grad"),
                                         elementwise_op("gelu_tanh_grad")};
  const Array& gx = *call.gx;
  elementwise(slopes[static_cast<int>(call.function)], {*call.gy, *call.kept}, gx);
  if (call.sums == nullptr) return;
  const Array sums = call.sums->reshape({1, gx.shape()[1]});
  kernels::reduce(gx.device(), {ReduceOp::kSum, &gx, &sums, 1, 1.0, call.accumulate});
}

}  // namespace
}  // namespace catena

CATENA_COMPOSED_FAMILY(linear) {
  kernels::linear_activation.provide<&linear_activation>(type, "composed", -1);
  kernels::linear_activation_grad.provide<&linear_activation_grad>(type, "composed", -1);
}
