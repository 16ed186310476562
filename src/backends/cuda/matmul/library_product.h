// Products of arrays as plain numbers, and as cuBLASLt sees them.
#pragma once

#include <optional>

#include "backends/cuda/matmul/cublaslt.h"

namespace catena {
struct MatmulCall;
}

namespace catena::gpu {

// The numbers of a call.
Product product_of(const MatmulCall& call);
// Empty for layouts that the library does not take.
std::optional<LibraryProduct> library_product(const Product& product);

}  // namespace catena::gpu
