// Body of the emulated reductions: reduce.cuh compiled for the host. The includer has defined
// EMULATED_NAME, EMULATED_TYPES, EMULATED_IDENTITY, EMULATED_COMBINE and EMULATED_DIVIDES.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "device/fibers.h"
#include "device/reduce_case.h"

namespace EMULATED_NAME {
#include "device/prelude.cuh"
namespace catena {
namespace jit {
EMULATED_TYPES
struct Reduction {
  static constexpr bool kDivides = EMULATED_DIVIDES;
  static Accumulator identity() { return EMULATED_IDENTITY; }
  static Accumulator map(Input x) { return Accumulator(x); }
  static Accumulator combine(Accumulator a, Accumulator b) { return EMULATED_COMBINE; }
};
}  // namespace jit
}  // namespace catena
#include "device/reduce.cuh"
}  // namespace EMULATED_NAME

namespace emulated {

void EMULATED_NAME(int kernel, uint64_t blocks, unsigned splits, void* arguments) {
  using namespace ::EMULATED_NAME;
  using namespace ::EMULATED_NAME::catena::jit;
  const Dim3 grid{unsigned(blocks), splits, 1};
  const auto& a = *static_cast<ReduceArgs*>(arguments);
  if (kernel == 0) run_grid(grid, kReduceThreads, true, [&] { catena_reduce_rows(a); });
  if (kernel == 1) run_grid(grid, kReduceThreads, true, [&] { catena_reduce_columns(a); });
  if (kernel == 2) run_grid(grid, kReduceThreads, true, [&] { catena_reduce_finish(a); });
  if (kernel == 3) run_grid(grid, kReduceThreads, false, [&] { catena_reduce_short(a); });
}

}  // namespace emulated
