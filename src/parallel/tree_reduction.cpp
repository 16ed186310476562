#include "tree_reduction.h"

#include "catena/array/creation.h"
#include "catena/array/math.h"

namespace catena::parallel {
namespace {

// Below this a second call costs more than what it saves.
constexpr int64_t kShortBytes = int64_t(1) << 14;

void scale_tree_sum(const Array& sum, double factor) {
  if (factor != 1) multiply(sum, factor, sum);
}

}  // namespace

// One call a level of the tree.
Array tree_sum(const Array& rows) {
  const int64_t count = rows.length();
  for (int64_t stride = 1; stride < count; stride *= 2) {
    const Array left = rows(Slice(0, count, 2 * stride));
    add(left, rows(Slice(stride, count, 2 * stride)), left);
  }
  return rows(0);
}

void tree_all_reduce(Communicator& comm, const Array& x, double factor) {
  const int64_t ranks = comm.size();
  if (ranks == 1) return scale_tree_sum(x, factor);
  if (x.nbytes() <= kShortBytes) {
    const Array sum = tree_sum(comm.all_gather(x).reshape({ranks, x.size()}));
    scale_tree_sum(sum, factor);
    x.assign(sum);
    return;
  }
  const int64_t piece = (x.size() + ranks - 1) / ranks;
  const bool fits = piece * ranks == x.size();
  Array whole = x;
  if (!fits) {
    whole = zeros({piece * ranks}, {x.dtype(), x.device()});
    whole(Slice(0, x.size())).assign(x);
  }
  const Array sum = tree_sum(comm.all_to_all(whole).reshape({ranks, piece}));
  scale_tree_sum(sum, factor);
  comm.all_gather(sum, whole);
  if (!fits) x.assign(whole(Slice(0, x.size())));
}

}  // namespace catena::parallel
