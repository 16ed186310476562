#include "catena/functions/pooling/unpooling_2d.h"

#include "functions/common/image_window.h"
#include "functions/common/resample.h"

namespace catena::functions {
namespace {

struct Unpooling {
  static constexpr const char* kName = "Unpooling2D";
};

// Sizes and distances below this leave 64 bits nowhere.
constexpr int64_t kMostDistance = int64_t{1} << 30;

void check_unpooling(Extent2D ksize, const Unpooling2DOptions& o) {
  const Extent2D stride = o.stride.value_or(ksize);
  check_least(Unpooling::kName, "window", ksize, 1);
  check_least(Unpooling::kName, "stride", stride, 1);
  check_least(Unpooling::kName, "pad", o.pad, 0);
  if (o.outsize) check_least(Unpooling::kName, "result", *o.outsize, 1);
  for (const Extent2D& e : {ksize, stride, o.pad})
    CATENA_CHECK(ValueError, e.height <= kMostDistance && e.width <= kMostDistance,
                 Unpooling::kName, ": expected a window, stride and pad of at most ", kMostDistance,
                 ", got ", text_of(e));
}

// From the result to x: x is what a sum over windows gives.
AxisMap along(int64_t extent, int64_t kernel, int64_t stride, int64_t pad,
              std::optional<int64_t> outsize, bool cover_all) {
  const int64_t natural = stride * (extent - 1) + kernel - 2 * pad - (cover_all ? stride - 1 : 0);
  return {AxisRule::kWindow, outsize.value_or(natural), extent, kernel, stride, pad};
}

ResamplePlan unpooling_plan(const FunctionCall& call, Extent2D ksize, const Unpooling2DOptions& o) {
  const Array& x = call[0].data();
  const Shape& image = x.shape();
  require_sizes(call, {image[2], image[3]}, 1);
  const Extent2D stride = o.stride.value_or(ksize);
  std::optional<int64_t> height, width;
  if (o.outsize) height = o.outsize->height, width = o.outsize->width;
  const AxisMap rows =
                    along(image[2], ksize.height, stride.height, o.pad.height, height, o.cover_all),
                columns =
                    along(image[3], ksize.width, stride.width, o.pad.width, width, o.cover_all);
  CATENA_CHECK(ShapeError, rows.in >= 1 && columns.in >= 1, call.label(), ": windows of ",
               text_of(ksize), " with stride ", text_of(stride), " and pad ", text_of(o.pad),
               " make no image of (", image[2], ", ", image[3],
               "); use less padding, a larger window, or an outsize");
  return ResamplePlan(rows, columns, x, true);
}

}  // namespace

Variable unpooling_2d(const VariableOperand& operand, Extent2D ksize,
                      const Unpooling2DOptions& options) {
  check_unpooling(ksize, options);
  FunctionCall call(Unpooling::kName, Autocast::kNone, operand);
  check_images(call);
  return linear_map(call, Resample<Unpooling>{unpooling_plan(call, ksize, options)});
}

}  // namespace catena::functions
