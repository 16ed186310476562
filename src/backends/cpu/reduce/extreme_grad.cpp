// The gradient of maxima and minima in one pass over memory. See catena/kernels/extreme.h.
#include "catena/kernels/extreme.h"

#include <algorithm>

#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/extreme_rows.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"

namespace catena::host {
namespace {

// The memory of a call, addressed by elements.
struct Operands {
  const char *x, *y, *gy;
  char* gx;
  int64_t item;

  explicit Operands(const ExtremeGradCall& call)
      : x(static_cast<const char*>(call.x.raw_data())),
        y(static_cast<const char*>(call.y.raw_data())),
        gy(static_cast<const char*>(call.gy.raw_data())),
        gx(static_cast<char*>(call.gx.raw_data())),
        item(call.x.itemsize()) {}
  Operands at(int64_t element, int64_t extreme) const {
    Operands o = *this;
    o.x += element * item, o.gx += element * item;
    o.y += extreme * item, o.gy += extreme * item;
    return o;
  }
};

void extreme_grad(const ExtremeGradCall& call) {
  constexpr int64_t kLongRow = 4096;  // rows of more elements are shared by threads
  const ExtremeLoops& loops = loops_of<ExtremeTables>(call.x.dtype());
  const int64_t outer = call.x.shape()[0], n = call.x.shape()[1], inner = call.x.shape()[2];
  const Operands all(call);
  const int threads = threads_for(call.x.size() / 2);
  if (inner > 1) {
    parallel_ranges(outer * n, 1, threads, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const Operands o = all.at(row * inner, row / n * inner);
        loops.gradient(o.x, o.y, o.gy, inner, o.gx);
      }
    });
  } else if (n <= kLongRow) {
    parallel_ranges(outer, 64, threads, [&](int64_t begin, int64_t end) {
      const Operands o = all.at(begin * n, begin);
      loops.rows_gradient(o.x, o.y, o.gy, end - begin, n, o.gx);
    });
  } else {
    const int64_t pieces = (n + kLongRow - 1) / kLongRow;
    parallel_for(outer * pieces, threads, [&](int64_t unit) {
      const int64_t row = unit / pieces, first = unit % pieces * kLongRow;
      const Operands o = all.at(row * n + first, row);
      loops.rows_gradient(o.x, o.y, o.gy, 1, std::min(kLongRow, n - first), o.gx);
    });
  }
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, extreme_grad) {
  kernels::extreme_grad.provide<&host::extreme_grad>(DeviceType::kCpu, "cpu");
}
