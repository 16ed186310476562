// Sequences of different lengths in records of functions: how they are packed, and each computed by
// itself.
#pragma once

#include "catena/array/creation.h"
#include "catena/functions/connection/packed_sequences.h"
#include "functions/function_record.h"

namespace catena {

// Lengths of n sequences of at most `steps`, in no order.
inline std::vector<int32_t> lengths_for(int64_t steps, int64_t n) {
  std::vector<int32_t> lengths;
  for (int64_t k = 0; k < n; ++k) lengths.push_back(static_cast<int32_t>(1 + (k * 2 + 1) % steps));
  return lengths;
}

// x, (steps, n, ...), with those lengths, beside x.
inline F::PackedSequences packed(const Variable& x) {
  return F::PackedSequences(x, array(lengths_for(x.shape(0), x.shape(1))).to(x.device()));
}

// Applies f to each sequence of x alone, (length, 1, in), and its states, (layers, 1, out), and
// puts the results together: states, and then one array of steps, 0 behind the ends.
template <class F>
Plains each_by_itself(const Plain& x, const Plains& states, F f) {
  const int64_t steps = x.shape[0], n = x.shape[1];
  std::vector<Plains> results;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t length = lengths_for(steps, n)[size_t(k)];
    const auto alone = [&](const Plain& all, int64_t extent) {
      return plain({extent, 1, all.shape[2]}, [&](const Shape& i) { return all(i[0], k, i[2]); });
    };
    Plains own;
    for (const Plain& s : states) own.push_back(alone(s, s.shape[0]));
    results.push_back(f(alone(x, length), own));
  }
  Plains together;
  for (size_t r = 0; r < results[0].size(); ++r) {
    const bool by_steps = r + 1 == results[0].size();
    const Shape first = results[0][r].shape;
    together.push_back(plain({by_steps ? steps : first[0], n, first[2]}, [&](const Shape& i) {
      const Plain& own = results[size_t(i[1])][r];
      return i[0] < own.shape[0] ? own(i[0], int64_t(0), i[2]) : 0.0;
    }));
  }
  return together;
}

}  // namespace catena
