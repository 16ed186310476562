// The core of the kernel bundle: what the layers, losses, optimizers, iterators and hooks of the
// library request while they train in one of the floating dtypes. tests/device/core_programs_test
// records the requests and fails if one of them is missing here.
#include "backends/cuda/jit/tool/bundle_list.h"
#include "kernels/elementwise_rows.h"

namespace catena::jit {

namespace {

using enum Dtype;
using enum ElementwiseOp;

const Dtype kFloats[] = {kFloat32, kFloat16, kBFloat16, kFloat64};

// In each floating dtype.
const ElementwiseOp kFloatOps[] = {
    // arithmetic and its gradients
    kadd, ksubtract, kmultiply, kdivide, kdivide_grad_rhs, knegative, kreciprocal, ksquare,
    ksquare_grad, ksqrt, ksqrt_grad, krsqrt, krsqrt_grad, kexp, klog, kabsolute, kabsolute_grad,
    // choices: max, min, where, clip
    kmaximum, kminimum, kmaximum_grad, kmaximum_grad_rhs, kclip, kclip_grad, kequal, kwhere,
    // activations
    krelu, krelu_grad, ksigmoid, ksigmoid_grad, ktanh, ktanh_grad, ksoftplus, ksoftplus_grad};
const ReduceOp kFloatReductions[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin,
                                     ReduceOp::kSumOfSquares};

// Labels, cursors and clipping factors.
const std::pair<ElementwiseOp, Dtype> kOtherOps[] = {
    {kadd, kInt64}, {knot_equal, kInt32}, {knot_equal, kFloat64}, {kfmin, kFloat64}};
const std::pair<Dtype, Dtype> kCasts[] = {
    {kFloat16, kFloat32}, {kFloat32, kFloat16}, {kBFloat16, kFloat32}, {kFloat32, kBFloat16},
    {kFloat64, kFloat32}, {kFloat32, kFloat64}, {kUInt8, kFloat32},    {kBool, kFloat32},
    {kBool, kFloat16},    {kBool, kBFloat16},   {kBool, kFloat64},     {kInt32, kFloat32},
    {kInt32, kFloat16},   {kInt32, kBFloat16},  {kInt32, kFloat64},    {kInt64, kInt32},
    {kUInt8, kInt32}};

}  // namespace

std::vector<BundleItem> core_programs() {
  std::vector<BundleItem> list;
  for (const Dtype d : kFloats) {
    for (const ElementwiseOp op : kFloatOps) list.push_back(map_item(op, d));
    for (const ReduceOp op : kFloatReductions) list.push_back(reduce_item(op, d, d));
  }
  for (const Dtype d : {kFloat16, kBFloat16}) {
    // Norms of 16-bit gradients, and losses that add up in float32.
    for (const ReduceOp op : {ReduceOp::kSumOfSquares, ReduceOp::kSum})
      list.push_back(reduce_item(op, d, kFloat32));
    for (const MapSpec& spec : {MapSpec{kmultiply, kFloat32, {kFloat32, d, kFloat32}},
                                MapSpec{kmultiply, kFloat32, {d, kFloat32, kFloat32}},
                                MapSpec{kmultiply, kFloat32, {d, d, kFloat32}}})
      list.push_back(mixed_item(spec));
  }
  // int64 labels, cast.
  list.push_back(mixed_item({kclip, kInt64, {kInt32, kInt64, kInt64, kInt64}}));
  for (const auto& [op, d] : kOtherOps) list.push_back(map_item(op, d));
  for (const auto& [from, to] : kCasts) list.push_back(cast_item(from, to));
  // Copies and fills move words.
  for (const Dtype word : {kUInt8, kUInt16, kUInt32, kUInt64})
    list.push_back(map_item(kpositive, word));
  for (const int bytes : {1, 2, 4, 8, 16}) list.push_back(concatenate_item(bytes));
  // Ranks compare sums of the bits of their states.
  list.push_back(reduce_item(ReduceOp::kSum, kUInt64, kUInt64));
  list.push_back(arange_item(kInt64));
  return list;
}

}  // namespace catena::jit
