// Records of the slots of convolutions.
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/math.h"
#include "catena/kernels/slot.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

namespace F = functions;

constexpr int64_t kBatch = 3, kChannels = 4, kFilters = 6, kHeight = 9, kWidth = 8, kWindow = 3;

// In both layouts, with all gradients.
Results convolution(Device device, F::ConvolutionOptions options) {
  Results results;
  for (const bool last : {false, true}) {
    const Array images = data(device, {kBatch, kChannels, kHeight, kWidth});
    const Variable x(last ? F::channels_last(images) : images),
        W(data(device, {kFilters, kChannels / options.groups, kWindow, kWindow}, 2)),
        b(data(device, {kFilters}, 3));
    const Variable y = F::convolution_2d(x, W, b, options);
    y.set_grad(data(device, y.shape(), 4));
    y.backward();
    results.insert(results.end(), {y.data(), x.grad(), W.grad(), b.grad()});
  }
  return results;
}

// By products of patches, which the companions' convolutions do without.
Results own_convolution(Device device, F::ConvolutionOptions options) {
  const ProviderScope own("onednn:off,cudnn:off");
  return convolution(device, options);
}

// What one number of y, one of W and one of x have to do with each other. Both window and stride
// are (rows, columns).
struct Geometry {
  int64_t stride[2] = {1, 1}, pad[2] = {0, 0}, dilation = 1, groups = 1;
  bool cover_all = false;

  int64_t out(int axis) const {
    const int64_t room =
        (axis == 0 ? kHeight : kWidth) + 2 * pad[axis] - dilation * (kWindow - 1) - 1;
    return (room + (cover_all ? stride[axis] - 1 : 0)) / stride[axis] + 1;
  }
  // Calls f(x, w, y) with the positions of every product in the sum.
  template <class F>
  void each_product(F f) const {
    const int64_t in = kChannels / groups, per_group = kFilters / groups;
    const auto visit = [&](int64_t n, int64_t o, int64_t c, int64_t row, int64_t column, int64_t i,
                           int64_t j) {
      const int64_t r = row * stride[0] - pad[0] + i * dilation;
      const int64_t s = column * stride[1] - pad[1] + j * dilation;
      if (r < 0 || r >= kHeight || s < 0 || s >= kWidth) return;
      const int64_t channel = o / per_group * in + c;
      f(((n * kChannels + channel) * kHeight + r) * kWidth + s,
        ((o * in + c) * kWindow + i) * kWindow + j,
        ((n * kFilters + o) * out(0) + row) * out(1) + column);
    };
    for (int64_t n = 0; n < kBatch; ++n)
      for (int64_t o = 0; o < kFilters; ++o)
        for (int64_t c = 0; c < in; ++c)
          for (int64_t at = 0; at < out(0) * out(1); ++at)
            for (int64_t k = 0; k < kWindow * kWindow; ++k)
              visit(n, o, c, at / out(1), at % out(1), k / kWindow, k % kWindow);
  }
};

Plains reference(const Geometry& g) {
  const auto zeros = [](const Shape& shape) { return plain(shape, [](int64_t) { return 0.0; }); };
  const Shape y_shape{kBatch, kFilters, g.out(0), g.out(1)};
  const int64_t area = g.out(0) * g.out(1);
  const Plain x = plain_data({kBatch, kChannels, kHeight, kWidth}),
              w = plain_data({kFilters, kChannels / g.groups, kWindow, kWindow}, 2),
              b = plain_data({kFilters}, 3), gy = plain_data(y_shape, 4);
  Plain y = plain(y_shape, [&](int64_t i) { return b(i / area % kFilters); });
  Plain gx = zeros(x.shape), gw = zeros(w.shape), gb = zeros(b.shape);
  g.each_product([&](int64_t ix, int64_t iw, int64_t iy) {
    y.values[size_t(iy)] += x(ix) * w(iw);
    gx.values[size_t(ix)] += gy(iy) * w(iw);
    gw.values[size_t(iw)] += gy(iy) * x(ix);
  });
  for (int64_t i = 0; i < gy.size(); ++i) gb.values[size_t(i / area % kFilters)] += gy(i);
  return {y, gx, gw, gb, y, gx, gw, gb};
}

}  // namespace

CATENA_SLOT_RECORDS(convolution) {
  return {
      {"convolution", [](Device d) -> Results { return convolution(d, {.pad = 1}); },
       []() -> Plains {
         return reference({.pad = {1, 1}});
       }},
      {"convolution_grad_x",
       [](Device d) -> Results {
         return convolution(d, {.stride = {2, 1}, .groups = 2});
       },
       []() -> Plains {
         return reference({.stride = {2, 1}, .groups = 2});
       }},
      {"convolution_grad_w",
       [](Device d) -> Results { return convolution(d, {.stride = 2, .dilation = 2}); },
       []() -> Plains {
         return reference({.stride = {2, 2}, .dilation = 2});
       }},
      {"patches",
       [](Device d) -> Results {
         return own_convolution(d, {.pad = {1, 2}});
       },
       []() -> Plains {
         return reference({.pad = {1, 2}});
       }},
      {"patch_sums",
       [](Device d) -> Results { return own_convolution(d, {.stride = 3, .cover_all = true}); },
       []() -> Plains {
         return reference({.stride = {3, 3}, .cover_all = true});
       }},
  };
}

}  // namespace catena
