#include "catena/optimizers/sharded_array.h"

namespace catena::optimizers {

ShardedArray ShardedArray::whole_of(const std::string& state, const std::string& path,
                                    const Array& array, const Parameter& parameter) {
  return {state + path,      array.shape(), array.dtype(), {},
          {0, array.size()}, array,         parameter,     state};
}

void ShardedArray::assign(const Array& array) const {
  if (is_whole() && local.shape() == shape) return local.assign(array);
  if (covers.size() == 0) return;
  const Array flat = Array::uninitialized({element_count(shape)}, dtype, local.device());
  Array::from_storage(flat.storage(), 0, shape, order.strides(shape, flat.itemsize()), dtype)
      .assign(array);
  local.assign(flat(Slice(covers.begin, covers.end)));
}

}  // namespace catena::optimizers
