#include "catena/functions/pooling/max_pooling_2d.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/linear_map.h"
#include "catena/functions/array/take.h"
#include "catena/functions/array/transpose.h"
#include "catena/kernels/pooling.h"
#include "functions/common/image_window.h"
#include "functions/common/resample.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

constexpr const char* kMaxPooling = "MaxPooling2D";
constexpr const char* kAdaptive = "AdaptiveMaxPooling2D";

// Of a window: kernels number them in 32 bits.
constexpr int64_t kMostElements = INT32_MAX;

void check_window(const ImageWindow& over, const Shape& image, const FunctionCall& call) {
  const Window& w = over.window;
  const Extent2D ksize{w.kernel[0], w.kernel[1]}, pad{w.pad[0], w.pad[1]};
  over.require_position(call, image, false);
  CATENA_CHECK(ShapeError, w.kernel[0] <= kMostElements / w.kernel[1], call.label(),
               ": a window of ", text_of(ksize), " has more than ", kMostElements,
               " elements; use a smaller one");
  for (int k = 0; k < w.axes; ++k)
    CATENA_CHECK(ShapeError, w.pad[k] < w.kernel[k] && image[size_t(2 + k)] > 0, call.label(),
                 ": a window of ", text_of(ksize), " with pad ", text_of(pad),
                 " would see padding alone at the edge of an image of (", image[2], ", ", image[3],
                 "); use a pad below the window's size, and images with elements");
}

ImagePlan max_pooling_plan(const FunctionCall& call, const Extent2D& ksize,
                           const MaxPooling2DOptions& o) {
  const Array& x = call[0].data();
  const Shape& image = x.shape();
  const Extent2D stride = o.stride.value_or(ksize);
  const Window window{{ksize.height, ksize.width},
                      {stride.height, stride.width},
                      {o.pad.height, o.pad.width},
                      {1, 1}};
  const ImageWindow over = ImageWindow::of_pooling(window, image, o.cover_all);
  check_window(over, image, call);
  return {over.without_idle_distances(),
          image,
          {image[0], image[1], over.positions[0], over.positions[1]},
          BatchLayout::of(x, 1)};
}

// What the forward call leaves for the gradients.
struct Left {
  Kept<MaxPoolingGradCall> kept;
  Array x, y;  // only where the provider reads them
};

const Array* pointer(const Array& a) { return a.defined() ? &a : nullptr; }

// The map from gy to gx, whose adjoint takes the same elements out of an image.
struct Gradient {
  static constexpr const char* kName = "MaxPooling2DGrad";
  ImagePlan plan;
  Left left;

  Array forward(const Array& gy) const {
    const Array gx = plan.layout.uninitialized(plan.x_shape, gy);
    forward(gy, gx, false);
    return gx;
  }
  void forward(const Array& gy, const Array& gx, bool accumulate) const {
    if (gx.size() == 0) return;
    if (!plan.layout.fits(gx)) return detail::assign_or_add(gx, forward(gy), accumulate);
    const Array g = plan.layout.laid_out(gy);
    kernels::max_pooling_grad(gx.device(), {&g, &gx, plan.window, accumulate, &left.kept,
                                            pointer(left.x), pointer(left.y)});
  }
  Array adjoint(const Array& image) const {
    const Array picked = plan.layout.uninitialized(plan.y_shape, image);
    if (picked.size() == 0) return picked;
    const Array in = plan.layout.laid_out(image);
    kernels::max_pooling_pick(image.device(),
                              {&in, &picked, plan.window, &left.kept, pointer(left.x)});
    return picked;
  }
};

class MaxPooling2DNode final : public FunctionNode {
 public:
  MaxPooling2DNode(const ImagePlan& plan, const Kept<MaxPoolingGradCall>& kept, bool reads_arrays)
      : plan_(plan), kept_(kept), reads_arrays_(reads_arrays) {}
  std::string label() const override { return kMaxPooling; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    Left left{kept_, {}, {}};
    if (reads_arrays_) {
      left.x = plan_.layout.laid_out(context.input(0).data());
      left.y = plan_.layout.laid_out(context.output().data());
    }
    give_linear<false>(context, 0, *inputs()[0], Gradient{plan_, left}, gy);
  }

 private:
  ImagePlan plan_;
  Kept<MaxPoolingGradCall> kept_;
  bool reads_arrays_;
};

void check_max_pooling(Extent2D ksize, const MaxPooling2DOptions& options) {
  check_least(kMaxPooling, "window", ksize, 1);
  check_least(kMaxPooling, "stride", options.stride.value_or(ksize), 1);
  check_least(kMaxPooling, "pad", options.pad, 0);
}

// `out` parts of an axis of `in` elements; part i begins at floor(i * in / out) and ends before
// ceil((i + 1) * in / out).
struct AdaptiveParts {
  int64_t in, out;
  int64_t largest = 0;  // elements of a part

  AdaptiveParts(int64_t in, int64_t out) : in(in), out(out) {
    for (int64_t i = 0; i < out; ++i)
      largest = std::max(largest, ((i + 1) * in + out - 1) / out - i * in / out);
  }
  bool are_windows() const { return in % out == 0; }
  // The elements of all parts, one part after the other. A smaller part repeats its last element up
  // to the size of the largest: neither what is largest nor which of equal elements comes first
  // changes. Made on the device, so that nothing waits for a copy from the host.
  Array positions(Device device) const {
    const Array slot = arange(out * largest, {Dtype::kInt64, device});
    const Array part = catena::floor_divide(slot, largest);
    const Array end = catena::floor_divide((part + 1) * in + (out - 1), out);
    return catena::minimum(catena::floor_divide(part * in, out) + (slot - part * largest), end - 1);
  }
};

// Images whose parts along an axis, 2 or 3, are windows side by side.
Variable with_windows(const Variable& x, int axis, const AdaptiveParts& parts) {
  const Array positions = parts.positions(x.device());
  if (!BatchLayout::of(x.data(), 1).last) return take(x, positions, axis);
  // take() gives C order: what is innermost stays so.
  return transpose(take(transpose(x, {0, 2, 3, 1}), positions, axis - 1), {0, 3, 1, 2});
}

// Columns first: of equal elements the first in C order stays the first one.
Variable pool_parts(const Variable& x, const AdaptiveParts& rows, const AdaptiveParts& columns) {
  const Variable wide = columns.are_windows() ? x : with_windows(x, 3, columns);
  if (rows.are_windows()) return max_pooling_2d(wide, {rows.largest, columns.largest});
  const Variable narrow = max_pooling_2d(wide, {1, columns.largest});
  return max_pooling_2d(with_windows(narrow, 2, rows), {rows.largest, 1});
}

}  // namespace

Variable max_pooling_2d(const VariableOperand& operand, Extent2D ksize,
                        const MaxPooling2DOptions& options) {
  check_max_pooling(ksize, options);
  FunctionCall call(kMaxPooling, Autocast::kNone, operand);
  check_images(call);
  const ImagePlan plan = max_pooling_plan(call, ksize, options);
  const Array x = plan.layout.laid_out(call[0].data());
  const Array y = plan.layout.uninitialized(plan.y_shape, x);
  Kept<MaxPoolingGradCall> kept;
  bool reads_arrays = false;
  const bool recorded = call.is_recorded();
  if (y.size() > 0)
    kernels::max_pooling(x.device(), {&x, &y, plan.window, recorded ? &kept : nullptr,
                                      recorded ? &reads_arrays : nullptr});
  // Where nothing was kept, any provider may be asked for the gradient, and finds the places in x.
  if (recorded && kept.maker() == nullptr) reads_arrays = true;
  return call.record(y, [&] {
    auto node = make_node<MaxPooling2DNode>(plan, kept, reads_arrays);
    if (reads_arrays) {
      node->save_input(0, call[0]);
      node->save_output(0, y);
    }
    return node;
  });
}

Variable adaptive_max_pooling_2d(const VariableOperand& operand, Extent2D outsize) {
  check_least(kAdaptive, "size", outsize, 1);
  FunctionCall call(kAdaptive, Autocast::kNone, operand);
  check_images(call);
  const Variable& x = call[0];
  const int64_t height = x.shape()[2], width = x.shape()[3];
  require_sizes(call, {height, width}, outsize);
  return pool_parts(x, {height, outsize.height}, {width, outsize.width});
}

MaxPooling2D::MaxPooling2D(Extent2D ksize, const MaxPooling2DOptions& options)
    : ksize_(ksize), options_(options) {
  check_max_pooling(ksize, options);
}

Variable MaxPooling2D::operator()(const VariableOperand& x) const {
  return max_pooling_2d(x, ksize_, options_);
}

void MaxPooling2D::visit_parameters(const Visitor&, const std::string&) {}

}  // namespace catena::functions
