// Host glue of the max pooling slots.
#include "backends/cuda/pooling/pooling.h"

#include "backends/common/family.h"
#include "backends/common/pooling_places.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/pooling.h"

namespace catena::gpu {
namespace {

// Of an image, a result and the window.
PoolingArgs arguments(const Array& x, const Array& y, const Window& window) {
  PoolingArgs args{};
  args.sizes = pooling_sizes(x, y, window);
  if (!args.sizes.last) {
    args.sizes.images *= args.sizes.channels;
    args.sizes.channels = 1;
  }
  args.aligned = aligned16(x.raw_data(), y.raw_data());
  return args;
}

// Into `values`, memory for a result that is laid out like y.
void forward(const Array& x, const Array& y, const Window& window, const Array& values,
             const Array& places) {
  PoolingArgs args = arguments(x, y, window);
  args.x = x.raw_data();
  args.y = values.raw_data();
  args.aligned = args.aligned && aligned16(args.y);
  args.places = places.defined() ? places.raw_data() : nullptr;
  launch_max_pooling(float_code("max_pooling", x.dtype()), args, launch_for(x));
  check_launch("max_pooling");
}

void max_pooling_grad(const MaxPoolingGradCall& call);

void max_pooling(const MaxPoolingCall& call) {
  if (call.kept == nullptr) return forward(*call.x, *call.y, call.window, *call.y, Array());
  auto* state = new PoolingPlaces;
  IntrusivePtr<const KeptState> owner(state);
  state->of_position = places_for(pooling_sizes(*call.x, *call.y, call.window), *call.y);
  forward(*call.x, *call.y, call.window, *call.y, state->of_position);
  call.kept->keep<&max_pooling_grad>(std::move(owner));
}

// Places that the forward call kept, or found in x anew. `y` gives the size.
template <class Call>
Array places_of(const Call& call, const Array& y) {
  if (call.kept)
    if (const auto* own = call.kept->template state<&max_pooling_grad, PoolingPlaces>())
      return own->of_position;
  const Array places = places_for(pooling_sizes(*call.x, y, call.window), y);
  forward(*call.x, y, call.window, Array::uninitialized({y.size()}, y.dtype(), y.device()), places);
  return places;
}

void max_pooling_grad(const MaxPoolingGradCall& call) {
  const Array places = places_of(call, *call.gy);
  PoolingArgs args = arguments(*call.gx, *call.gy, call.window);
  args.gy = call.gy->raw_data();
  args.gx = call.gx->raw_data();
  args.places = places.raw_data();
  args.accumulate = call.accumulate;
  launch_max_pooling_grad(float_code("max_pooling_grad", call.gx->dtype()), args,
                          launch_for(*call.gx));
  check_launch("max_pooling_grad");
}

void max_pooling_pick(const MaxPoolingPickCall& call) {
  const Array places = places_of(call, *call.picked);
  PoolingArgs args = arguments(*call.image, *call.picked, call.window);
  args.x = call.image->raw_data();
  args.y = call.picked->raw_data();
  args.places = places.raw_data();
  launch_max_pooling_pick(float_code("max_pooling_pick", call.image->dtype()), args,
                          launch_for(*call.image));
  check_launch("max_pooling_pick");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, pooling) {
  kernels::max_pooling.provide<&gpu::max_pooling>(DeviceType::kCuda, "cuda");
  kernels::max_pooling_grad.provide<&gpu::max_pooling_grad>(DeviceType::kCuda, "cuda");
  kernels::max_pooling_pick.provide<&gpu::max_pooling_pick>(DeviceType::kCuda, "cuda");
}
