// A host number as kernels get it: the bits of its storage type.
#pragma once

#include <cstdint>
#include <cstring>

#include "catena/core/dtype.h"
#include "catena/core/scalar.h"

namespace catena {

// The number in storage type d, in the low bytes of a 64-bit word.
inline uint64_t scalar_bits(const Scalar& value, Dtype d) {
  return visit_dtype(d, [&]<class T>(TypeTag<T>) {
    const T number = value.to<T>();
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof(T));
    return bits;
  });
}

}  // namespace catena
