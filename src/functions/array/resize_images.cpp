#include "catena/functions/array/resize_images.h"

#include "functions/common/image_window.h"
#include "functions/common/resample.h"

namespace catena::functions {
namespace {

struct Resize {
  static constexpr const char* kName = "ResizeImages";
};
struct Upsampling {
  static constexpr const char* kName = "UpsamplingNearest";
};

AxisRule rule_of(const ResizeImagesOptions& o) {
  if (o.mode == ResizeMode::kNearest) return AxisRule::kNearest;
  return o.align_corners ? AxisRule::kAligned : AxisRule::kCentered;
}

ResamplePlan plan_of(const FunctionCall& call, AxisRule rule, Extent2D size) {
  const Array& x = call[0].data();
  const Shape& image = x.shape();
  require_sizes(call, {image[2], image[3]}, size);
  return ResamplePlan({rule, image[2], size.height}, {rule, image[3], size.width}, x);
}

}  // namespace

Variable resize_images(const VariableOperand& operand, Extent2D output_shape,
                       const ResizeImagesOptions& options) {
  check_least(Resize::kName, "size", output_shape, 1);
  FunctionCall call(Resize::kName, Autocast::kNone, operand);
  check_images(call);
  return linear_map(call, Resample<Resize>{plan_of(call, rule_of(options), output_shape)});
}

Variable upsampling_nearest(const VariableOperand& operand, Extent2D scale) {
  check_least(Upsampling::kName, "scale", scale, 1);
  FunctionCall call(Upsampling::kName, Autocast::kNone, operand);
  check_images(call);
  const Shape& image = call[0].data().shape();
  const auto scaled = [](int64_t extent, int64_t by) {
    return extent > kMostOfAxis / by ? kMostOfAxis + 1 : extent * by;
  };
  const Extent2D size(scaled(image[2], scale.height), scaled(image[3], scale.width));
  return linear_map(call, Resample<Upsampling>{plan_of(call, AxisRule::kNearest, size)});
}

}  // namespace catena::functions
