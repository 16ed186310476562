// Shares of n things, as equal as they can be, that nest: the k-th of m is made of the 2k-th and
// the next one of 2m. So the part of a batch that a rank gets is made of whole slices.
#pragma once

#include <cstdint>

namespace catena {

// Where share k of `shares` begins, which is where the one before it ends; n for k = shares.
constexpr int64_t begin_of_share(int64_t n, int64_t k, int64_t shares) {
  return (n * k + shares - 1) / shares;
}

}  // namespace catena
