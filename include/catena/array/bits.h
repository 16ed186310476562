// Bits of integers: packed booleans and counts, as NumPy. Nothing waits for a GPU.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/array/array.h"

namespace catena {

// Which bit of a byte stands for the first of eight elements: the highest or the lowest.
enum class BitOrder : uint8_t { kBig, kLittle };

// Eight elements along the axis (none: of the flattened array) in each uint8, 1 for "not 0"; zeros
// fill up the last. Integers and bool (DtypeError).
Array packbits(const Array& a, OptionalAxis axis = none, BitOrder order = BitOrder::kBig);
// The bits of uint8 (DtypeError) as uint8 of 0 and 1, eight along the axis for each. `count`: only
// so many of them; a negative one leaves as many out at the end, one beyond the end adds zeros.
Array unpackbits(const Array& a, OptionalAxis axis = none, std::optional<int64_t> count = {},
                 BitOrder order = BitOrder::kBig);
// How many bits of the magnitude of each integer (DtypeError for floats) are 1: uint8.
Array bitwise_count(const Array& a);

}  // namespace catena
