// Records of the slots of pooling.
#include "catena/kernels/pooling.h"

#include "catena/array/creation.h"
#include "kernels/pooling_case.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

testing::PoolingCase pooling_case() {
  testing::PoolingCase c;
  c.images = 2, c.channels = 3, c.extents = {8, 10}, c.cover_all = true;
  c.window = {{3, 2}, {2, 3}, {1, 0}, {1, 1}};
  return c;
}
const Shape kImages{2, 3, 8, 10};
Shape out_shape() { return pooling_case().shape(pooling_case().positions()); }

// y, gx and the elements of another image at the places, by calls that keep something or nothing.
Results max_pooling(Device device) {
  const Window window = pooling_case().window;
  Results results;
  for (const bool keep : {true, false}) {
    const Array x = data(device, kImages), gy = data(device, out_shape(), 2),
                image = data(device, kImages, 3);
    const Array y = zeros(out_shape(), {x.dtype(), device}), gx = zeros_like(x),
                picked = zeros_like(y);
    Kept<MaxPoolingGradCall> kept;
    bool reads = false;
    kernels::max_pooling(device, {&x, &y, window, keep ? &kept : nullptr, keep ? &reads : nullptr});
    kernels::max_pooling_grad(device, {&gy, &gx, window, false, &kept, &x, &y});
    kernels::max_pooling_pick(device, {&image, &picked, window, &kept, &x});
    results.insert(results.end(), {y, gx, picked});
  }
  return results;
}

}  // namespace

CATENA_SLOT_RECORDS(pooling) {
  return {{"max_pooling", max_pooling},
          {"max_pooling_grad", max_pooling},
          {"max_pooling_pick", max_pooling}};
}

}  // namespace catena
