// Host glue of the patch slots.
#include "backends/cuda/convolution/patches.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/convolution.h"
#include "catena/kernels/copy.h"

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
  const Array& image = *call.image;
  float_code("patches", image.dtype());
  PatchArgs args = arguments(image, *call.patches, call.window);
  args.from = image.raw_data(), args.to = call.patches->raw_data();
  launch_patches(image.itemsize(), args, launch_for(image));
  check_launch("patches");
}

void patch_sums(const PatchSumsCall& call) {
  const Array& image = *call.image;
  const Float type = float_code("patch_sums", image.dtype());
  PatchArgs args = arguments(image, *call.patches, call.window);
  args.from = call.patches->raw_data(), args.to = image.raw_data();
  const Launch launch = launch_for(image);
  if (args.has_windows_apart() && !call.accumulate) {
    if (!args.covers_image()) kernels::fill(image.device(), {image, 0});
    launch_patches_back(image.itemsize(), args, launch);
  } else {
    launch_patch_sums(type, args, call.accumulate, launch);
  }
  check_launch("patch_sums");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, patches) {
  kernels::patches.provide<&gpu::patches>(DeviceType::kCuda, "cuda");
  kernels::patch_sums.provide<&gpu::patch_sums>(DeviceType::kCuda, "cuda");
}
