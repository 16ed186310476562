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

}  // namespace

CATENA_SLOT_RECORDS(convolution) {
  return {
      {"convolution", [](Device d) { return convolution(d, {.pad = 1}); }},
      {"convolution_grad_x",
       [](Device d) {
         return convolution(d, {.stride = {2, 1}, .groups = 2});
       }},
      {"convolution_grad_w", [](Device d) { return convolution(d, {.stride = 2, .dilation = 2}); }},
      {"patches",
       [](Device d) {
         return own_convolution(d, {.pad = {1, 2}});
       }},
      {"patch_sums", [](Device d) { return own_convolution(d, {.stride = 3, .cover_all = true}); }},
  };
}

}  // namespace catena
