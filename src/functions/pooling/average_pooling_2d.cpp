#include "catena/functions/pooling/average_pooling_2d.h"

#include "catena/autograd/linear_map.h"
#include "functions/common/image_window.h"
#include "functions/common/resample.h"

namespace catena::functions {
namespace {

struct Pooling {
  static constexpr const char* kName = "AveragePooling2D";
};
struct GlobalPooling {
  static constexpr const char* kName = "GlobalAveragePooling2D";
};
struct AdaptivePooling {
  static constexpr const char* kName = "AdaptiveAveragePooling2D";
};

void check_average_pooling(Extent2D ksize, const AveragePooling2DOptions& o) {
  check_least(Pooling::kName, "window", ksize, 1);
  check_least(Pooling::kName, "stride", o.stride.value_or(ksize), 1);
  check_least(Pooling::kName, "pad", o.pad, 0);
}

AxisMap window_along(const ImageWindow& over, int axis, int64_t extent) {
  const Window w = over.without_idle_distances();
  return {AxisRule::kWindow, extent,         over.positions[axis],
          w.kernel[axis],    w.stride[axis], w.pad[axis]};
}

ResamplePlan average_pooling_plan(const FunctionCall& call, Extent2D ksize,
                                  const AveragePooling2DOptions& o) {
  const Array& x = call[0].data();
  const Shape& image = x.shape();
  const Extent2D stride = o.stride.value_or(ksize);
  const ImageWindow over({{ksize.height, ksize.width},
                          {stride.height, stride.width},
                          {o.pad.height, o.pad.width},
                          {1, 1}},
                         image, false);
  over.require_position(call, image, false);
  ResamplePlan plan(window_along(over, 0, image[2]), window_along(over, 1, image[3]), x);
  plan.divisor = double(ksize.height) * double(ksize.width);
  return plan;
}

// Along an axis; equal parts are windows, which have faster kernels.
AxisMap bins_along(int64_t in, int64_t out, bool equal) {
  if (equal) return {AxisRule::kWindow, in, out, in / out, in / out};
  return {AxisRule::kBins, in, out};
}

template <class Name>
Variable pool_into(FunctionCall& call, Extent2D outsize) {
  check_images(call);
  const Array& x = call[0].data();
  const int64_t height = x.shape()[2], width = x.shape()[3];
  require_sizes(call, {height, width}, outsize);
  const bool equal = height % outsize.height == 0 && width % outsize.width == 0;
  ResamplePlan plan(bins_along(height, outsize.height, equal),
                    bins_along(width, outsize.width, equal), x);
  if (equal) plan.divisor = double(plan.rows.kernel) * double(plan.columns.kernel);
  return linear_map(call, Resample<Name>{plan});
}

}  // namespace

Variable average_pooling_2d(const VariableOperand& operand, Extent2D ksize,
                            const AveragePooling2DOptions& options) {
  check_average_pooling(ksize, options);
  FunctionCall call(Pooling::kName, Autocast::kNone, operand);
  check_images(call);
  return linear_map(call, Resample<Pooling>{average_pooling_plan(call, ksize, options)});
}

Variable global_average_pooling_2d(const VariableOperand& operand) {
  FunctionCall call(GlobalPooling::kName, Autocast::kNone, operand);
  return pool_into<GlobalPooling>(call, 1);
}

Variable adaptive_average_pooling_2d(const VariableOperand& operand, Extent2D outsize) {
  check_least(AdaptivePooling::kName, "size", outsize, 1);
  FunctionCall call(AdaptivePooling::kName, Autocast::kNone, operand);
  return pool_into<AdaptivePooling>(call, outsize);
}

AveragePooling2D::AveragePooling2D(Extent2D ksize, const AveragePooling2DOptions& options)
    : ksize_(ksize), options_(options) {
  check_average_pooling(ksize, options);
}

Variable AveragePooling2D::operator()(const VariableOperand& x) const {
  return average_pooling_2d(x, ksize_, options_);
}

void AveragePooling2D::visit_parameters(const Visitor&, const std::string&) {}

}  // namespace catena::functions
