// Description of a convolution for all of its providers: sizes, window, layouts. Names as in
// catena/kernels/convolution.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/common/plan_key.h"
#include "catena/array/array.h"
#include "catena/kernels/convolution.h"

namespace catena {

enum class ConvolutionPass : uint8_t { kForward, kGradX, kGradW };

constexpr PlanWord word_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward: return "forward";
    case ConvolutionPass::kGradX: return "grad_x";
    case ConvolutionPass::kGradW: break;
  }
  return "grad_w";
}

struct ConvolutionProblem {
  ConvolutionPass pass;
  Dtype dtype;
  Window window;
  int64_t batch, channels, filters, groups;
  int64_t image[kMaxWindowAxes], out[kMaxWindowAxes];  // extents of x and of y behind the channels
  bool channels_last;  // x and y; arrays that fit both layouts count as contiguous
  bool weights_last;   // W likewise; then channels_last too
  bool bias, accumulate;

  int64_t positions() const { return product(out); }
  int64_t image_size() const { return product(image); }
  double multiply_adds() const {
    return double(batch) * double(filters) * double(positions()) * double(channels / groups) *
           double(window.taps());
  }
  // Whether it is one product of channels for each position, without patches.
  bool is_pointwise() const {
    for (int k = 0; k < window.axes; ++k)
      if (window.kernel[k] != 1 || window.stride[k] != 1 || window.pad[k] != 0 ||
          out[k] != image[k])
        return false;
    return true;
  }
  // Whether no two positions see the same element: the patches of all positions are then no larger
  // than the padded image.
  bool has_windows_apart() const {
    for (int k = 0; k < window.axes; ++k)
      if (out[k] > 1 && window.range(k) > window.stride[k]) return false;
    return true;
  }
  // Whether all sizes are numbers that libraries count in 32 bits.
  bool fits_32_bits() const {
    const auto fits = [](int64_t n) { return n <= INT32_MAX; };
    bool all = fits(batch) && fits(channels) && fits(filters);
    for (int k = 0; k < window.axes; ++k)
      all = all && fits(image[k]) && fits(out[k]) && fits(window.kernel[k]) &&
            fits(window.stride[k]) && fits(window.pad[k]) && fits(window.dilation[k]);
    return all;
  }
  // To a PlanKey or a PlanText.
  template <class Key>
  void describe(Key& key) const {
    constexpr PlanWord kFamily = "convolution", kFirst = "first", kLast = "last";
    key << kFamily << word_of(pass) << dtype << (channels_last ? kLast : kFirst)
        << (weights_last ? kLast : kFirst) << bias << accumulate << batch << channels << filters
        << groups;
    for (int k = 0; k < window.axes; ++k)
      key << image[k] << out[k] << window.kernel[k] << window.stride[k] << window.pad[k]
          << window.dilation[k];
  }

 private:
  int64_t product(const int64_t* extents) const {
    int64_t result = 1;
    for (int k = 0; k < window.axes; ++k) result *= extents[k];
    return result;
  }
};

namespace detail {

// x may be gx, W gW, y gy.
inline ConvolutionProblem problem_of(ConvolutionPass pass, const Array& x, const Array& W,
                                     const Array& y, const Window& window, int groups) {
  const Shape &xs = x.shape(), &ys = y.shape();
  ConvolutionProblem p{};
  p.pass = pass, p.dtype = x.dtype(), p.window = window;
  p.batch = xs[0], p.channels = xs[1], p.filters = ys[1], p.groups = groups;
  for (int k = 0; k < window.axes; ++k) {
    p.image[k] = xs[size_t(2 + k)];
    p.out[k] = ys[size_t(2 + k)];
  }
  p.channels_last = !(x.is_contiguous() && y.is_contiguous());
  p.weights_last = !W.is_contiguous();
  return p;
}

}  // namespace detail

inline ConvolutionProblem problem_of(const ConvolutionCall& c) {
  auto p = detail::problem_of(ConvolutionPass::kForward, *c.x, *c.W, *c.y, c.window, c.groups);
  p.bias = c.b != nullptr;
  return p;
}
inline ConvolutionProblem problem_of(const ConvolutionGradXCall& c) {
  auto p = detail::problem_of(ConvolutionPass::kGradX, *c.gx, *c.W, *c.gy, c.window, c.groups);
  p.accumulate = c.accumulate;
  return p;
}
inline ConvolutionProblem problem_of(const ConvolutionGradWCall& c) {
  auto p = detail::problem_of(ConvolutionPass::kGradW, *c.x, *c.gW, *c.gy, c.window, c.groups);
  p.accumulate = c.accumulate;
  return p;
}

}  // namespace catena
