// The keys that attention rules leave to queries, as an array: for providers and gradients that are
// composed of array functions.
#pragma once

#include "catena/array/array.h"
#include "catena/kernels/attention.h"

namespace catena {

// bool, true where a query may attend to a key by rules and mask, of 4 axes that broadcast to
// (batch, heads, queries, keys). On the device of q.
Array allowed_keys(const AttentionCall& call);
// bool (batch, 1, keys, 1), true for the rows of k and v that key_lengths, which there are, leave.
Array keys_within_lengths(const AttentionCall& call);

}  // namespace catena
