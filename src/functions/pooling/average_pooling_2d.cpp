#include "catena/functions/pooling/average_pooling_2d.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/autograd/linear_map.h"
#include "catena/functions/math/elementwise.h"
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

ImageWindow average_pooling_window(const FunctionCall& call, Extent2D ksize,
                                   const AveragePooling2DOptions& o) {
  const Shape& image = call[0].shape();
  const Extent2D stride = o.stride.value_or(ksize);
  const ImageWindow over = ImageWindow::of_pooling({{ksize.height, ksize.width},
                                                    {stride.height, stride.width},
                                                    {o.pad.height, o.pad.width},
                                                    {1, 1}},
                                                   image, o.cover_all);
  over.require_position(call, image, false);
  return over;
}

ResamplePlan average_pooling_plan(const ImageWindow& over, const Array& x) {
  const Shape& image = x.shape();
  ResamplePlan plan(window_along(over, 0, image[2]), window_along(over, 1, image[3]), x);
  plan.divisor = double(over.window.kernel[0]) * double(over.window.kernel[1]);
  return plan;
}

// The elements of the window that the last position along an axis has of the padded image: all but
// for a position that cover_all adds.
int64_t last_elements(const ImageWindow& over, int axis, const Shape& image) {
  const Window& w = over.window;
  const int64_t begin = (over.positions[axis] - 1) * w.stride[axis] - w.pad[axis];
  return std::min(w.kernel[axis], image[size_t(2 + axis)] + w.pad[axis] - begin);
}

// Means over whole windows, of which the last ones along an axis become means over what they have.
Variable without_rest(const Variable& y, const ImageWindow& over, const Shape& image) {
  Variable result = y;
  for (const int axis : {0, 1}) {
    const int64_t kernel = over.window.kernel[axis], last = last_elements(over, axis, image);
    if (last == kernel) continue;
    const int64_t positions = over.positions[axis];
    Array factors = ones({positions}, {y.dtype(), y.device()});
    factors(positions - 1).fill(double(kernel) / double(last));
    result = result * (axis == 0 ? factors.expand_dims(1) : factors);
  }
  return result;
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
  const ImageWindow over = average_pooling_window(call, ksize, options);
  const Shape image = call[0].shape();
  const ResamplePlan plan = average_pooling_plan(over, call[0].data());
  return without_rest(linear_map(call, Resample<Pooling>{plan}), over, image);
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
