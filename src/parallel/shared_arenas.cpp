#include "shared_arenas.h"

#include "catena/comm/internals.h"

namespace catena::parallel {

Array SharedArenas::allocate(optimizers::ArenaBlock block, int64_t elements, Dtype dtype,
                             Device device) {
  using optimizers::ArenaBlock;
  const CommunicatorPtr comm = comm_.lock();
  const bool is_exchanged = block == ArenaBlock::kData || block == ArenaBlock::kGradient;
  if (comm && is_exchanged && device == comm->device()) {
    const auto size = int64_t(itemsize(dtype));
    const Shape shape{elements};
    if (const StoragePtr storage = comm::internals(*comm).allocate_shared(size_t(elements * size)))
      return Array::from_storage(storage, 0, shape, contiguous_strides(shape, size), dtype);
  }
  return Array::uninitialized({elements}, dtype, device);
}

}  // namespace catena::parallel
