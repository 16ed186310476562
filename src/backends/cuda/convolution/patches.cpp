// Host glue of the patch slots.
#include "backends/cuda/convolution/patches.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/convolution.h"

namespace catena::gpu {
namespace {

PatchArgs arguments(const Array& image, const Array& patches, const Window& window) {
  PatchArgs args{};
  const Shape& i = image.shape();
  args.images = i[0], args.channels = i[1], args.height = i[2], args.width = i[3];
  for (size_t k = 0; k < 4; ++k) args.image[k] = image.strides()[k] / image.itemsize();
  for (size_t k = 0; k < 6; ++k) args.patches[k] = patches.strides()[k] / patches.itemsize();
  for (size_t k = 0; k < 2; ++k) {
    args.kernel[k] = patches.shape()[2 + k], args.out[k] = patches.shape()[4 + k];
    args.stride[k] = window.stride[k], args.pad[k] = window.pad[k];
    args.dilation[k] = window.dilation[k];
  }
  return args;
}

void patches(const PatchesCall& call) {
  PatchArgs args = arguments(*call.image, *call.patches, call.window);
  args.from = call.image->raw_data(), args.to = call.patches->raw_data();
  args.channels_last = args.channels > 1 && args.patches[1] == 1;
  launch_patches(float_code("patches", call.image->dtype()), args, launch_for(*call.image));
  check_launch("patches");
}

void patch_sums(const PatchSumsCall& call) {
  PatchArgs args = arguments(*call.image, *call.patches, call.window);
  args.from = call.patches->raw_data(), args.to = call.image->raw_data();
  args.channels_last = args.channels > 1 && args.image[1] == 1;
  args.accumulate = call.accumulate;
  launch_patch_sums(float_code("patch_sums", call.image->dtype()), args, launch_for(*call.image));
  check_launch("patch_sums");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, patches) {
  kernels::patches.provide<&gpu::patches>(DeviceType::kCuda, "cuda");
  kernels::patch_sums.provide<&gpu::patch_sums>(DeviceType::kCuda, "cuda");
}
