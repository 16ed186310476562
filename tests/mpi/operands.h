// What tests of sums over several processes add, and what must come of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/comm/communicator.h"
#include "catena/comm/internals.h"

namespace catena::mpi_test {

using comm::Reduce;
using comm::Reduction;
using Floats = std::vector<float>;

// A communicator of all ranks, for which these variables of the environment are set.
inline CommunicatorPtr made_with(Communicator& all,
                                 const std::vector<std::pair<const char*, const char*>>& settings) {
  for (const auto& [name, value] : settings) setenv(name, value, 1);
  const CommunicatorPtr made = all.split(0, all.rank());
  for (const auto& [name, value] : settings) unsetenv(name);
  return made;
}

// Of both signs, so that sums are rounded and depend on their order.
inline float operand(int rank, int64_t i) {
  const auto bits = uint32_t(i * 2654435761u + uint32_t(rank) * 40503u + 12345u) * 2246822519u;
  return std::ldexp(float(int(bits >> 12) - (1 << 19)), int(bits % 12) - 20);
}
inline float weight_at(int rank) { return rank == 1 ? 0 : 0.3f + 0.1f * float(rank); }

inline Floats operands(int rank, int64_t n) {
  Floats x;
  for (int64_t i = 0; i < n; ++i) x.push_back(operand(rank, i));
  return x;
}

// In the order of the ranks, in float32.
inline Floats expected(Reduction kind, int ranks, int64_t n) {
  Floats sums;
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) {
      volatile float x = operand(r, i);  // no fused multiplication and addition
      if (kind == Reduction::kWeighted) x = x * weight_at(r);
      sum = r == 0 ? float(x) : sum + x;
    }
    sums.push_back(kind == Reduction::kMean ? sum / float(ranks) : sum);
  }
  return sums;
}

inline Reduce reduce_at(Reduction kind, int rank) {
  return kind == Reduction::kWeighted ? comm::weighted(weight_at(rank)) : Reduce(kind);
}

// `n` elements that begin `offset` elements behind an aligned address, in memory of the pool or of
// the communicator, with a guard behind them.
constexpr float kGuard = -77;
struct Placed {
  Array whole, view;
  Placed(Communicator& comm, bool shared, int64_t n, int64_t offset) {
    const Shape shape{n + offset + 8};
    StoragePtr storage;
    if (shared) storage = comm::internals(comm).allocate_shared(size_t(shape[0]) * 4);
    whole = storage ? Array::from_storage(storage, 0, shape, contiguous_strides(shape, 4),
                                          Dtype::kFloat32)
                    : empty(shape, {Dtype::kFloat32, comm.device()});
    whole.fill(kGuard);
    view = whole(Slice(offset, offset + n));
  }
  // Whether the elements around the view are as they were.
  bool is_intact() const {
    const Floats all = whole.to_vector<float>();
    const auto first = size_t(static_cast<const float*>(view.raw_data()) -
                              static_cast<const float*>(whole.raw_data()));
    for (size_t i = 0; i < all.size(); ++i)
      if ((i < first || i >= first + size_t(view.size())) && all[i] != kGuard) return false;
    return true;
  }
};

}  // namespace catena::mpi_test
