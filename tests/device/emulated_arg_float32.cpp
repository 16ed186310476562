// argmax and argmin of floats on the host.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "device/fibers.h"
#include "device/reduce_case.h"

namespace arg_float32 {
#include "device/prelude.cuh"
namespace catena {
namespace jit {
typedef float Input;
}
}  // namespace catena
#include "device/arg_reduce.cuh"
}  // namespace arg_float32

namespace emulated {

void arg_float32(int kernel, uint64_t blocks, unsigned splits, void* arguments) {
  using namespace ::arg_float32;
  using namespace ::arg_float32::catena::jit;
  const Dim3 grid{unsigned(blocks), splits, 1};
  const auto& a = *static_cast<ReduceArgs*>(arguments);
  if (kernel == 0) run_grid(grid, kReduceThreads, true, [&] { catena_arg_reduce(a); });
  if (kernel == 1) run_grid(grid, kReduceThreads, true, [&] { catena_arg_reduce_columns(a); });
  if (kernel == 2) run_grid(grid, kReduceThreads, true, [&] { catena_arg_reduce_finish(a); });
}

}  // namespace emulated
