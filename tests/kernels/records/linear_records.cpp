// Records of the slots of linear layers with activations.
#include "catena/array/creation.h"
#include "catena/kernels/linear.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

constexpr LinearActivation kFunctions[] = {LinearActivation::kRelu, LinearActivation::kGelu,
                                           LinearActivation::kGeluTanh};

Results forward(Device device) {
  const Array x = data(device, {5, 6}), W = data(device, {16, 6}, 2), bias = data(device, {16}, 3);
  Results results;
  for (const LinearActivation f : kFunctions) {
    const Array y = zeros({5, 16}, {Dtype::kFloat32, device}), before = zeros_like(y);
    const bool keeps = f != LinearActivation::kRelu;
    kernels::linear_activation(device, {f, &x, &W, &bias, keeps ? &before : nullptr, &y});
    results.insert(results.end(), {y, before});
  }
  return results;
}

Results gradients(Device device) {
  Results results;
  for (const int64_t columns : {16, 21})
    for (const LinearActivation f : kFunctions) {
      const Array gy = data(device, {40, columns}), kept = data(device, {40, columns}, 2),
                  gx = zeros_like(gy), sums = data(device, {columns}, 3);
      kernels::linear_activation_grad(device, {f, &gy, &kept, &gx, &sums, columns == 21});
      results.insert(results.end(), {gx, sums});
    }
  return results;
}

}  // namespace

CATENA_SLOT_RECORDS(linear) {
  return {{"linear_activation", forward}, {"linear_activation_grad", gradients}};
}

}  // namespace catena
