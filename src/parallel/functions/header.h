// Header sent before an array of unknown type.
#pragma once

#include <cstdint>
#include <vector>

#include "exchange.h"

namespace catena::parallel {

// The type, and whether a gradient is to come back.
struct TypeHeader {
  ArrayType type;
  bool recorded = false;
};

std::vector<int64_t> pack_header(const TypeHeader& header);
// CommError, which names `who`, for what is not a header.
TypeHeader unpack_header(const std::vector<int64_t>& words, const char* who);

}  // namespace catena::parallel
